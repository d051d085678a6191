// verify: does the model reproduce this recording exactly, under which rules, and under which limit?
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/caveat.h"
#include "base/result.h"
#include "replay/collection_limit.h"
#include "replay/exact_replay.h"

namespace oomscope {

struct VerifyOptions {
  std::optional<int64_t> limit_bytes;  // the limit, if the user knows it
  std::optional<RuleSet> rules;        // else they are found by trying
  // What the job ran under, as PYTORCH_CUDA_ALLOC_CONF takes it, if the user knows it; else the file's settings. A text
  // that the parser of a rule set refuses counts as default settings: check it first.
  std::optional<std::string> conf = std::nullopt;
  // Two threads, where the recording allows it: statistics of the replay's allocator then begin in its middle.
  bool in_two = false;
};

struct Verification {
  Timeline timeline;
  ReplayConfig config;                  // the rules, settings and limit that fit best
  std::unique_ptr<ExactReplay> replay;  // run to the end; refers to this object's timeline
  std::optional<LimitRange> limit;      // at least low_bytes and at most high_bytes, as requests and collection tell
  bool final_state_checked = false;
  bool final_state_equal = false;
  int64_t refused_requests = 0;   // oom events
  int64_t refused_by_driver = 0;  // of them, with less free on the card than was asked for
  Caveats caveats;

  [[nodiscard]] bool exact() const { return replay->differences() == 0 && (!final_state_checked || final_state_equal); }
};

// Replays device `device` of the snapshot, which must outlive the result.
// `pairs`: of that device's trace, where they are known already.
[[nodiscard]] std::unique_ptr<Verification> verify(const Snapshot& snapshot, int32_t device,
                                                   const VerifyOptions& options = {},
                                                   std::optional<Pairs> pairs = std::nullopt);

// The other rule sets that replay it without a difference, under the same settings and limit: the recording cannot tell
// them apart. Costs a replay each, up to its first difference.
[[nodiscard]] std::vector<std::string_view> equally_exact_rules(const Verification& verification);

}  // namespace oomscope
