// The ranks of one job side by side: which are alike, which is the odd one, who failed first, who peaks highest.
//
// Each rank is looked at alone (look_at_rank) and leaves a few kilobytes, so that a thousand ranks fit in memory;
// compare_ranks then sees only those.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/same_process.h"
#include "base/caveat.h"
#include "base/result.h"
#include "replay/verify.h"

namespace oomscope {

// Blocks that the setup left, of one size and from one place.
struct KeptBlocks {
  uint64_t what = 0;  // path and size as a hash
  int64_t count = 0;
};

// What a rank does, apart from how much: the places that it asks from, and what it keeps.
struct Design {
  bool from_start = false;          // the recording shows the setup too
  std::vector<uint64_t> paths;      // request_path of each request, ascending
  std::vector<uint64_t> large;      // of those that ask for more than a trifle
  std::vector<uint64_t> recurring;  // of `large`: freed and asked for again, so part of a step
  std::vector<KeptBlocks> kept;     // ascending
  bool ended_early = false;         // it ran out of memory, or the file was cut: what it kept is only a part
};

struct RankSite {
  std::string text;  // empty: no frame is known
  int64_t bytes = 0;
  bool user_code = false;
};

struct RankFacts {
  int32_t device = 0;
  int64_t events = 0;
  bool complete = true;
  bool exact = true;
  bool failed = false;
  int64_t request_bytes = 0;  // of the failed request
  int64_t failed_at_us = 0;   // Unix time; 0: not recorded
  int64_t ends_at_us = 0;     // its last event; 0: not recorded
  std::string failed_site;    // empty: no frame is known
  int64_t peak_allocated_bytes = 0;
  int64_t peak_reserved_bytes = 0;
  std::vector<RankSite> sites;      // at the peak of allocated bytes; they sum to what was active then
  std::vector<int64_t> curve = {};  // allocated bytes over its events, at most 120 points: see allocated_curve
  Design design;
  EventSample events_sample = {};
};

[[nodiscard]] RankFacts look_at_rank(const Verification& verification);

struct Rank {
  std::string label;  // the job where several lie together; the file's name where it tells no rank; else empty
  std::string path;
  std::optional<int64_t> node;
  std::optional<int64_t> rank;
  bool says_rank = false;      // a word of the file's name does
  std::optional<Error> error;  // it could not be read: no facts
  RankFacts facts;
};

// Takes out what is no rank of its own but another snapshot of a process that is there already, and returns it. The one
// that failed last stays, else the one that ends last. Ranks that their names tell apart all stay, and so do copies
// that are numbered.
std::vector<Rank> take_out_repeats(std::vector<Rank>& ranks);

// Ranks of one design: replicas, or the same stage of several pipelines.
struct RankGroup {
  std::vector<size_t> members;  // indices of ranks, ascending
  size_t typical = 0;           // the one with the median peak, of two the lower; of those that did not end early
};

struct SiteDifference {
  std::string site;  // empty: no frame is known
  int64_t bytes = 0;
};

// Inside its group its peak stands out by `bytes` (negative: below). The sites sum to the difference of what was
// active at both peaks; most bytes first.
struct Outlier {
  size_t rank = 0;
  size_t typical = 0;  // the rank that it is compared with
  size_t group = 0;
  int64_t bytes = 0;
  std::vector<SiteDifference> sites;
};

struct RankComparison {
  std::vector<RankGroup> groups;
  std::vector<std::optional<size_t>> group_of;  // by rank; empty for unreadable ones
  std::vector<Outlier> outliers;                // most bytes first
  bool unrelated = false;  // no name says "rank", and most ask like no other: recordings, not the ranks of one job
  int64_t failed = 0;
  int64_t unreadable = 0;
  std::optional<size_t> first_failure;  // empty: none failed, or nobody can know which was the first
  std::optional<size_t> highest_peak;   // empty: none could be read
  std::optional<size_t> chosen;  // the one worth explaining: first failed, else highest of the failed, else of all
};

[[nodiscard]] RankComparison compare_ranks(const std::vector<Rank>& ranks);

// Is it one design? See Note [Stages and outliers].
[[nodiscard]] bool is_same_design(const Design& a, const Design& b);

}  // namespace oomscope
