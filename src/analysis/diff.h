// What changed between two recordings: bytes by line of code at one moment of each, signed, and the settings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/show.h"
#include "analysis/sites.h"
#include "base/result.h"
#include "replay/verify.h"
#include "types/phrase.h"

namespace oomscope {

// The moment that is compared: the same kind in both, each at its own event.
struct DiffMoment {
  Moment moment = Moment::peak;
  std::optional<int64_t> step;  // then the peak inside this step counts
};

// One line of code, matched. A side that lacks it has bytes and line 0.
struct DiffRow {
  std::string site;  // "train.py:88 forward", moved "train.py:88->91 forward"; empty: no frame is known
  uint64_t line_a = 0;
  uint64_t line_b = 0;
  bool user_code = false;
  int64_t bytes_a = 0;
  int64_t bytes_b = 0;
  int64_t count_a = 0;
  int64_t count_b = 0;
  [[nodiscard]] int64_t delta() const { return bytes_b - bytes_a; }
  [[nodiscard]] bool moved() const { return line_a != 0 && line_b != 0 && line_a != line_b; }
};

// A setting or a circumstance in which the recordings differ. Its name is diff.setting.ID in words/.
struct SettingDifference {
  std::string id;
  Phrase a;  // empty: not recorded
  Phrase b;
};

struct Diff {
  Shown a;  // totals and the moment; its rows are not filled from here
  Shown b;
  std::vector<DiffRow> rows;  // the user's own code first, then by size of the difference; sum to the active bytes
  std::vector<SettingDifference> settings;
};

// Errors: no-oom-event, steps-unknown, step-not-found; they name the side, A or B.
[[nodiscard]] Result<Diff> find_differences(const Verification& a, const Verification& b, const DiffMoment& moment);

// See Note [Matching lines].
[[nodiscard]] std::vector<DiffRow> match_sites(const std::vector<LiveSite>& a, const std::vector<LiveSite>& b);

// Of a step that the recording marks (record_function scopes "oomscope.step:N", or the profiler's "ProfilerStep#N") or,
// where it marks none, shows (find_structure; from 1) the event at which most was allocated.
[[nodiscard]] Result<uint32_t> peak_of_step(const Verification& verification, int64_t step);

}  // namespace oomscope
