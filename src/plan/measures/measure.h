// Measures: what may be done to need less memory, each a change of a job's requests.
//
// To add one: src/plan/measures/NAME.cc defines `Measure NAME()`, measures.cc lists it, and its remedy's text and
// snippet stand in src/remedies (`remedy` is the id there). What a recording cannot carry is refused with a reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/job.h"

namespace oomscope {

// What speaks against using two at once: of one group at most one is taken.
enum class MeasureGroup : uint8_t {
  batch,
  checkpointing,
  precision,
  optimizer,
  attention,
  loss,
  gradients,
  sharding,
  mode
};

struct Measure {
  std::string_view id;      // "checkpointing-2": every second block
  std::string_view remedy;  // of the catalogue
  MeasureGroup group = MeasureGroup::batch;
  // Error `does-not-apply`: `what` says why, as a phrase's key under measure.no.*
  Result<Job> (*apply)(const Job& job) = nullptr;
  std::optional<double> time_factor = {};  // of a step; empty: not known
  // To rank sets of measures only: time as far as known or usual, and more where results or the set-up change.
  double rank_cost = 1;
};

[[nodiscard]] const std::vector<Measure>& all_measures();

// `reason` is the key's last part: "no-backward".
[[nodiscard]] Error does_not_apply(std::string_view reason);

}  // namespace oomscope
