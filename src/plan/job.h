// Job: a recording's requests with what is known of every block, ready to be changed by measures.
//
// A measure is a function from Job to Job, so measures can follow each other; replay knows nothing of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/categories.h"
#include "model/structure.h"
#include "replay/verify.h"
#include "replay/what_if.h"

namespace oomscope {

inline constexpr uint32_t kNowhere = 0xffffffff;

// What a block is. Positions are indices into Job::requests.kind.
struct JobBlock {
  Category category = Category::unknown;
  CategoryReason reason = CategoryReason::none;
  Phase phase = Phase::unknown;  // at its birth
  uint32_t pass = kNoPass;
  int step = 0;
  StackId stack = StackId::none;
  uint32_t made_at = kNowhere;
  uint32_t freed_at = kNowhere;  // kNowhere: alive at the end
};

struct JobPass {
  uint32_t begin = kNowhere;        // position of its first request
  uint32_t forward_end = kNowhere;  // of the first behind forward and loss
  uint32_t end = kNowhere;
  bool has_backward = false;
};

struct Job {
  const Structure* structure = nullptr;  // of the recording; must outlive the job
  const Snapshot* snapshot = nullptr;    // likewise
  RequestStream requests;
  std::vector<JobBlock> blocks;  // by allocation
  std::vector<Phase> phase;      // by position: of the last request made
  std::vector<JobPass> passes;
  uint32_t failed = kNoAllocation;  // the request that the program died of: a block that was never made
  bool ends_in_failure = false;     // the last pass may lack its backward
  bool is_16_bit = false;           // computes in 16 bits
  bool is_compiled = false;         // torch.compile made its kernels: no module says what they keep
  int64_t unsure_bytes = 0;         // by which measures had to assume, for the recording does not say

  [[nodiscard]] const StackTraits& traits(uint32_t id) const { return structure->traits(blocks[id].stack); }
  // Is the request at a position the one that the program died of?
  [[nodiscard]] bool is_fatal(uint32_t position) const {
    return failed != kNoAllocation && requests.kind[position] == RequestKind::failed &&
           requests.id[position] + 1 == requests.failures.size();
  }
  [[nodiscard]] int64_t size(uint32_t id) const { return requests.size[id]; }
  [[nodiscard]] Phase freed_in(uint32_t id) const {
    return blocks[id].freed_at == kNowhere ? Phase::unknown : phase[blocks[id].freed_at];
  }
  // The innermost Python function of its stack, and where it stands; empty without frames.
  [[nodiscard]] std::string_view function_of(uint32_t id) const;
  [[nodiscard]] std::string_view file_of(uint32_t id) const;
  // Born in forward or loss and needed by backward.
  [[nodiscard]] bool is_kept_for_backward(uint32_t id) const;
  // Allocations in the order in which they are asked for, from position `begin` up to `end`; the failed one, too.
  [[nodiscard]] std::vector<uint32_t> made_between(uint32_t begin, uint32_t end) const;
};

[[nodiscard]] Job make_job(const Verification& verification, const Structure& structure);
// The same of requests scaled from the recording: its allocations first, and scratch behind them.
[[nodiscard]] Job make_job(const Verification& verification, const Structure& structure, RequestStream requests);

// Changes to a job, made at once by build().
class JobEditor {
 public:
  explicit JobEditor(const Job& job)
      : job_(job), size_(job.requests.size), dropped_(size_.size(), false), refreed_(size_.size(), false) {}

  void drop(uint32_t id) { dropped_[id] = true; }
  // By so many bytes the peak may be another one: an assumption that the recording does not show to hold.
  void assume(int64_t bytes) { unsure_bytes_ = std::max(unsure_bytes_, bytes); }
  void resize(uint32_t id, int64_t bytes) { size_[id] = bytes; }
  [[nodiscard]] int64_t size(uint32_t id) const { return size_[id]; }
  [[nodiscard]] bool is_dropped(uint32_t id) const { return dropped_[id]; }
  [[nodiscard]] bool is_refreed(uint32_t id) const { return refreed_[id]; }

  // A block of its own, otherwise like another; it exists once ask() was called.
  uint32_t add(int64_t bytes, uint32_t like);
  // What is known of an added block, to be changed.
  JobBlock& added(uint32_t id) { return added_[id - job_.blocks.size()]; }
  // Before the request at `position`, in the order of these calls.
  void ask(uint32_t position, uint32_t id) { insert(position, RequestKind::malloc, id); }
  void release(uint32_t position, uint32_t id) { insert(position, RequestKind::free, id); }
  // Instead of where it was freed.
  void free_at(uint32_t id, uint32_t position) {
    if (id == job_.failed) return;
    refreed_[id] = true;
    release(position, id);
  }
  // A block that lives no longer than one request.
  void scratch(uint32_t position, int64_t bytes, uint32_t like) {
    const uint32_t id = add(bytes, like);
    ask(position, id);
    release(position, id);
  }

  [[nodiscard]] Job build() const;

 private:
  struct Insertion {
    uint32_t position;
    RequestKind kind;
    uint32_t id;
  };
  void insert(uint32_t position, RequestKind kind, uint32_t id) { insertions_.push_back({position, kind, id}); }

  const Job& job_;
  std::vector<int64_t> size_;
  std::vector<bool> dropped_;
  std::vector<bool> refreed_;
  std::vector<JobBlock> added_;  // behind those of the job
  std::vector<uint32_t> like_;   // by added block: an earlier one
  std::vector<Insertion> insertions_;
  int64_t unsure_bytes_ = 0;
};

}  // namespace oomscope
