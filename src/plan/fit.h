// fit: what a run at another value would need, whether it fits, and the largest value that does.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/scaling.h"
#include "replay/what_if.h"
#include "types/phase.h"

namespace oomscope {

enum class Fits : uint8_t { yes, no, unknown };
[[nodiscard]] std::string_view name_of(Fits fits);

// "Fits" by replay:
// yes      it completes without ever meeting the cap, wherever the driver puts segments; or it completes under the cap,
//          in a little less memory and in a little more, for near the edge fitting is not monotone;
// no       it is refused, and also in a little more memory;
// unknown  else.
inline constexpr double kSureMargin = 0.015;
inline constexpr double kExactMargin = 0.001;    // where nothing is left to chance
inline constexpr double kAddressMargin = 0.003;  // where driver addresses decide something
inline constexpr double kTableMargin = 0.02;     // where the table of convolutions tells
// `error`: by what share the requests themselves may be off, as those of a measure. Then yes and no hold with that much
// less, and more, memory.
[[nodiscard]] Fits fits_in(const RequestStream& requests, const WhatIf& question, double error = 0);
// Is that yes? In fewer replays.
[[nodiscard]] bool surely_fits(const RequestStream& requests, const WhatIf& question, double error);

// The same of a scaled run: where its scratch is guessed, all guesses must agree, be they likely or not.
[[nodiscard]] Fits fits_at(const ScalingModel& model, int64_t value, const WhatIf& question);

// The instant at which most bytes are live.
struct LimitingInstant {
  uint32_t event = kNoEvent;  // of the base recording
  Phase phase = Phase::unknown;
  int64_t requested = 0;
};

struct FitPoint {
  int64_t value = 0;
  bool recorded = false;
  OutcomeRange outcome;            // without a limit
  std::optional<Outcome> limited;  // under the cap, where one is given
  std::optional<Fits> fits;        // where a cap is given
  LimitingInstant instant;
};

struct FitSetting {
  std::string conf;
  AllocatorSettings settings;
  std::optional<int64_t> largest;  // empty: none fits, not even 1
};

struct FitQuestion {
  RuleSet rules;
  AllocatorSettings settings;  // of the points
  std::optional<int64_t> cap_bytes;
  CapKind cap_kind = CapKind::limit;
  std::optional<int64_t> at;
  int threads = 1;
  std::function<void(size_t done, size_t total)> progress;
};

struct Fit {
  std::vector<FitPoint> points;          // ascending in value
  std::optional<int64_t> largest;        // under the cap and the settings; empty without a cap, or where none fits
  std::optional<int64_t> largest_maybe;  // from there on it does not fit; in between it is unknown
  std::vector<FitSetting> by_setting;    // the settings asked for, PyTorch's defaults, and those that matter most
};

[[nodiscard]] Fit find_fit(const ScalingModel& model, const FitQuestion& question);

}  // namespace oomscope
