// Measures: what may be done to need less memory, each a change of a job's requests.
//
// To add one: src/plan/measures/NAME.cc defines `Measure NAME()`, measures.cc lists it, and its remedy's text and
// snippet stand in src/remedies (`remedy` is the id there). What a recording cannot carry is refused with a reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/job.h"
#include "types/phrase.h"

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
  std::string id;           // "accumulate-4"
  std::string_view name;    // its words are "measure.NAME", with {number}
  std::string_view remedy;  // of the catalogue
  MeasureGroup group = MeasureGroup::batch;
  // Error `does-not-apply`: `what` says why, as a phrase's key under measure.no.*
  Result<Job> (*apply)(const Job& job, int64_t number) = nullptr;
  int64_t number = 0;                      // micro-batches, every so manieth layer, processes; 0: none of these
  std::optional<double> time_factor = {};  // of a step; empty: not known
  double error = 0.03;  // how far its predicted peak was off, at worst, on models that it was not made on (accuracy.md)
  // To rank sets of measures only: time as far as known or usual, and more where results or the set-up change.
  double rank_cost = 1;
  bool needs_ranks = false;   // several processes
  bool for_momentum = false;  // of a job whose optimizer keeps one number a parameter: decides the lines to paste
};

// `ranks`: over so many processes are states divided.
[[nodiscard]] std::vector<Measure> all_measures(int64_t ranks);

[[nodiscard]] Phrase name_of(const Measure& measure);

// Does its optimizer keep momentum alone, not Adam's two numbers a parameter?
[[nodiscard]] bool has_momentum_alone(const Job& job);

// With so many times fewer samples, from an event of the recording on.
[[nodiscard]] Job with_smaller_batch(const Job& job, double by, uint32_t from_event = 0);
// Without what those passes keep for a backward that never comes. Error: does-not-apply.
[[nodiscard]] Result<Job> without_graph(const Job& job, const std::vector<bool>& passes);
// By id; for ranks as usual.
[[nodiscard]] std::optional<Measure> find_measure(std::string_view id);

// `reason` is the key's last part: "no-backward".
[[nodiscard]] Error does_not_apply(std::string_view reason);

}  // namespace oomscope
