// Scaling: from a few small recordings that differ in one quantity to the requests of a run at any value of it.
//
// The recording at the largest value is the base: its requests are closest to those of a larger run. Each of them is
// looked up in the other recordings (match_requests.h), and its sizes there say how it grows (size_model.h). At another
// value the base's requests are made anew with the sizes of that value, and replayed exactly: what fits is never a sum.
//
// Convolutions choose another kernel at another size, with scratch that nobody can foresee, and a few megabytes there
// move the reserved peak by percents either way. So such scratch is guessed several times, by up to kGuessSpread to
// both sides, and the median of the replays is the answer: on 20 predictions for convolutional networks its error was
// half that of a single one. The range that is given besides reaches farther, by kGuessRange: a kernel's successor may
// need less than half of its scratch, or half as much again.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/match_requests.h"
#include "plan/size_model.h"
#include "plan/values.h"

namespace oomscope {

struct ScalingInput {
  const Verification* verification = nullptr;
  std::string path;
};

inline constexpr uint32_t kVariants = 15;
inline constexpr double kGuessSpread = 0.3;
// Two more variants, for the range alone: all guesses low, all high.
inline constexpr uint32_t kLowVariant = kVariants;
inline constexpr uint32_t kHighVariant = kVariants + 1;
inline constexpr double kGuessRange = 0.6;

struct ScalingModel {
  std::vector<int64_t> values;     // ascending, one a recording
  std::vector<size_t> recordings;  // by value: index into the inputs
  ValueSource source = ValueSource::given;
  bool are_batches = false;             // the values: as far as the files' names say
  int power = 1;                        // sizes follow value^power: 2 for the side of a square image
  RequestLog base;                      // of the largest value
  std::vector<RequestStream> recorded;  // by value
  std::vector<SizeModel> sizes;         // by allocation of the base
  std::array<int64_t, kSizeRules> requests_by_rule{};
  std::array<int64_t, kSizeRules> bytes_by_rule{};  // of the base
  int64_t unmatched = 0;                            // requests of the base that no other recording has
  std::vector<uint32_t> guesses;  // allocations of the base: large scratch whose size follows no exact rule
  bool has_evaluation = false;
  bool has_saving = false;

  [[nodiscard]] int64_t base_value() const { return values.back(); }
};

// Errors: recordings-differ (the first difference), values-unknown, values-wrong, no-history, run-failed.
[[nodiscard]] Result<ScalingModel> scale(const std::vector<ScalingInput>& inputs,
                                         const std::optional<std::vector<int64_t>>& values);

// The requests of a run at `value`. Where there are guesses, variants from 1 on guess them otherwise.
[[nodiscard]] RequestStream requests_at(const ScalingModel& model, int64_t value, uint32_t variant = 0);
// The same, but at a value that was recorded the recording's own.
[[nodiscard]] RequestStream run_at(const ScalingModel& model, int64_t value, uint32_t variant = 0);
[[nodiscard]] bool is_recorded(const ScalingModel& model, int64_t value);

}  // namespace oomscope
