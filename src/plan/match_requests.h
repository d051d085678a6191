// Which request of one recording is which request of another, where one quantity of the job differs between them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "plan/bias_scratch.h"
#include "replay/verify.h"
#include "replay/what_if.h"

namespace oomscope {

inline constexpr uint32_t kNoMatch = 0xffffffff;

// A recording as scaling reads it: what it asked for, in order, and from where. The scratch of bias sums is left out of
// the order: it follows from their sizes.
struct RequestLog {
  const Verification* verification = nullptr;
  RequestStream requests;
  std::vector<uint32_t> order;  // allocations as they are asked for
  std::vector<uint64_t> site;   // by position in `order`: a hash of the stack's text; 0 without frames
  std::vector<bool> scratch;    // by position: freed before three others were asked for
  std::vector<bool> workspace;  // by position: freed before any other was
  std::vector<BiasSum> sums;
};

// Frames as text: hashes that are the same in every file. Of a path its last part counts: a copy of a script is the
// same script.
using FrameHashes = std::unordered_set<uint64_t>;
[[nodiscard]] FrameHashes frame_hashes(const Snapshot& snapshot);

// `shared`: frames that all recordings have. From where a model, or what else asks for memory, is called may differ.
[[nodiscard]] RequestLog request_log(const Verification& verification, const Structure& structure,
                                     const FrameHashes& shared);

// The innermost frame of the request at a position, and the first one outside of torch: "f (conv.py:1) < g (net.py:2)".
// Empty without frames.
[[nodiscard]] std::string site_of(const RequestLog& log, size_t position);

// Where two recordings part.
struct FirstDifference {
  uint32_t event_base;  // kNoEvent: behind the end
  uint32_t event_other;
  // The innermost frames in which their stacks differ: function and file:line. Where the stacks are the same, the
  // numbers of requests from there differ.
  std::string site_base;
  std::string site_other;
  int64_t count_base = 0;
  int64_t count_other = 0;
};

struct RequestMatch {
  std::vector<uint32_t> partner;       // by position in the base's order: position in the other's, or kNoMatch
  double growth = 1;                   // by which most of the sizes that differ do: base over other
  std::optional<double> other_growth;  // by which a few others do: another quantity
  int64_t framed = 0;                  // requests of the base that have frames and are no scratch
  int64_t framed_unmatched = 0;
  int64_t matched = 0;
  std::vector<FirstDifference> first;  // one at most
};

// Linear in requests where the runs are alike; see Note [Matching requests].
[[nodiscard]] RequestMatch match_requests(const RequestLog& base, const RequestLog& other);

}  // namespace oomscope
