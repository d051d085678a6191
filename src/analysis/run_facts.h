// RunFacts: what the rules of causes are asked about: a recording, read. Structure, categories, what is live at the
// instant and at the end, what passes left behind, what failed before and was survived.
//
// Built once for a `why`; linear in events.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/why.h"
#include "model/categories.h"
#include "model/structure.h"

namespace oomscope {

// What one pass left: blocks that were born in it and are live at RunFacts::basis.
struct PassRest {
  int64_t bytes = 0;
  int64_t blocks = 0;
  int64_t inner_bytes = 0;    // of them, born inside of modules
  uint32_t inner_stacks = 0;  // distinct stacks of those
  bool keeps_head = false;    // what its first operation made is among them: results come from the last
  uint32_t stacks = 0;        // distinct stacks of all requests of its forward
  int64_t kept_bytes = 0;     // live when its forward ended: the graph, if it has one
  uint32_t kept_stacks = 0;   // distinct stacks of those
  struct Request {
    StackId stack = StackId::none;
    int64_t bytes = 0;
  };
  std::array<Request, 3> head;  // its first requests: how large its input was
  uint32_t freed_by = kNoPass;  // the pass in whose backward its largest block died
};

// Passes from one line of the program that left blocks behind, one after another up to the last.
struct Growth {
  uint32_t caller = 0;
  uint32_t first_pass = 0;  // the first of them that left something
  uint32_t last_pass = 0;
  int64_t passes = 0;  // that left something
  int64_t of = 0;      // passes from that line
  int64_t bytes = 0;
  int64_t blocks = 0;
  bool with_graph = false;          // what is left comes from all over the model: a graph; else outputs
  StackId call = StackId::none;     // a stack of the first
  StackId largest = StackId::none;  // stack of the largest block that is left
  StackId site = StackId::none;     // all of it is from here, outside of modules; none: from all over the pass
};

// A request that failed and that the program survived.
struct SurvivedFailure {
  uint32_t event = 0;
  uint32_t pass = kNoPass;
  int64_t held_bytes = 0;  // live at the basis, of what the failed pass had made
};

// Blocks that share a stack and are live at the basis.
struct StackGroup {
  StackId stack = StackId::none;
  int64_t bytes = 0;
  int64_t blocks = 0;
  int64_t distinct_sizes = 0;
  uint32_t first_event = kNoEvent;
};

struct RunFacts {
  const Snapshot* snapshot = nullptr;
  const Diagnosis* diagnosis = nullptr;  // the instant, the limit, the free space
  Structure structure;
  std::vector<AllocationCategory> categories;
  CategorySums sums;                      // at the instant
  std::optional<int> compute_capability;  // of the card, where the user or a log names it
  bool is_16_bit = false;                 // it computes in 16 bits already

  uint32_t basis = 0;                  // the failure; where nothing failed, the end of work
  std::vector<uint32_t> live;          // allocations live at the basis, in order of birth
  std::vector<uint32_t> live_at_peak;  // at the instant; the same after a failure
  int64_t live_bytes = 0;              // requested, at the basis
  int64_t peak_bytes = 0;              // requested, at the instant
  Phase phase = Phase::unknown;        // at the instant
  int step = 1;
  uint32_t pass = kNoPass;      // the pass under way at the instant
  std::vector<PassRest> rests;  // by pass
  std::vector<Growth> growths;  // most bytes first
  std::vector<SurvivedFailure> survived;
  std::vector<StackGroup> groups;  // of live, most bytes first
  std::vector<uint32_t> left;      // of live, what passes left: in order of birth, none of the start

  [[nodiscard]] const Timeline& timeline() const { return diagnosis->verification->timeline; }
  [[nodiscard]] const Trace& trace() const { return timeline().trace(); }
  [[nodiscard]] const Instant& instant() const { return diagnosis->instant; }
  [[nodiscard]] bool failed() const { return diagnosis->instant.failed; }
  // Several passes, none of them with a backward or with a graph that is kept for one.
  [[nodiscard]] bool is_inference() const;
  [[nodiscard]] int64_t request() const { return diagnosis->instant.request_bytes; }
  // What had to be there at once at the failure; at a peak what was.
  [[nodiscard]] int64_t wanted() const { return peak_bytes + request(); }
  [[nodiscard]] const StackTraits& traits(uint32_t allocation) const {
    return structure.traits(timeline().allocations[allocation].stack);
  }
  [[nodiscard]] int64_t bytes_at(Category category) const { return sums.at[static_cast<size_t>(category)]; }
  // Would the failed request have fitted without so many bytes?
  [[nodiscard]] bool fits_without(int64_t bytes) const {
    return bytes > 0 && wanted() - bytes <= diagnosis->capacity.low_bytes;
  }
  // The pass that was under way at an event, or the last before it; kNoPass before the first.
  [[nodiscard]] uint32_t pass_at(uint32_t event) const;
  // Of `left`, those born in events [begin, end).
  [[nodiscard]] std::span<const uint32_t> left_of(uint32_t begin, uint32_t end) const;
  // ... and what a failed pass made, up to its failure.
  [[nodiscard]] std::span<const uint32_t> left_by(const SurvivedFailure& failure) const;
  // Belongs it to what a pass may leave behind, rather than to the model and its optimizer?
  [[nodiscard]] bool is_left_by_pass(uint32_t allocation) const;
  // What stays from step to step: parameters, gradients, optimizer state, workspaces.
  [[nodiscard]] int64_t persistent_bytes() const {
    return bytes_at(Category::parameter) + bytes_at(Category::gradient) + bytes_at(Category::optimizer_state) +
           bytes_at(Category::workspace) + bytes_at(Category::communication) + bytes_at(Category::graph_pool);
  }
  // By how much the first requests of a pass are larger than the same requests of each of `others`: the largest of the
  // ratios to the largest. 0 where none has the same.
  struct Larger {
    double ratio = 0;
    int64_t now = 0;
    int64_t before = 0;
    int64_t passes = 0;  // with the same first requests
  };
  [[nodiscard]] Larger larger_than_before(uint32_t index) const;
  // Its innermost frame, counted from 1; 0 without frames.
  [[nodiscard]] uint32_t inner_frame(StackId stack) const;
  // Did the forward of a pass keep blocks of many places of the model, as a graph does?
  [[nodiscard]] bool kept_graph(uint32_t index) const;
  // Matters `bytes` here at all? A share of what was wanted.
  [[nodiscard]] double share(int64_t bytes) const {
    return wanted() == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(wanted());
  }
};

// Enough of the failure, or of the peak, to be its cause: it would have fitted without, or they are a good share.
[[nodiscard]] bool matters(const RunFacts& facts, int64_t bytes);

[[nodiscard]] RunFacts find_run_facts(const Snapshot& snapshot, const Diagnosis& diagnosis);

}  // namespace oomscope
