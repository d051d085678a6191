// Scaling: from a few small recordings that differ in one quantity to the requests of a run at any value of it.
//
// The recording at the largest value is the base: its requests are closest to those of a larger run. Each of them is
// looked up in the other recordings (match_requests.h), and its sizes there say how it grows (size_model.h). At another
// value the base's requests are made anew with the sizes of that value, and replayed exactly: what fits is never a sum.
//
// Convolutions choose another kernel at another size, with scratch that nobody can foresee, and a few megabytes there
// move the reserved peak by percents either way. What is known of such scratch is in conv_scratch.h; the rest is
// guessed several times: which kernel it is, and by up to kGuessSpread to both sides where no sum explains it. The
// median of the replays is the answer. The range that is given besides reaches farther: there any scratch of a
// convolution may be another one's, and all of it that is guessed low, or high, by kGuessRange.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/conv_forecast.h"
#include "plan/match_requests.h"
#include "plan/size_model.h"
#include "plan/values.h"

namespace oomscope {

struct ScalingInput {
  const Verification* verification = nullptr;
  std::string path;
};

inline constexpr uint32_t kVariants = 15;
// More variants, for the range alone: explained scratch varies as well; all low; all high.
inline constexpr uint32_t kWideVariant = kVariants;
inline constexpr double kGuessSpread = 0.3;
inline constexpr uint32_t kLowVariant = kWideVariant + 10;
inline constexpr uint32_t kHighVariant = kLowVariant + 1;
inline constexpr double kGuessRange = 0.6;

// Scratch of a convolution whose kernel may be another one at larger values; see Note [Scratch of convolutions].
struct KernelChange {
  uint32_t id = kNoAllocation;       // allocation of the base; none: there it needs no scratch
  uint32_t result = kNoAllocation;   // of the base, behind which it is asked for
  SizeModel large;                   // of the other kernel
  std::optional<SizeModel> operand;  // where its size decides
  int64_t usual_from = 0;
};

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
  std::vector<uint32_t> guesses;    // allocations of the base: large scratch whose size follows no exact rule
  std::vector<uint32_t> explained;  // likewise: large scratch of convolutions that does, as long as the kernel stays
  std::vector<KernelChange> changes;
  std::optional<ConvForecast> forecast;  // of convolutions like measured ones: goes before the three above
  // Of all that is not sure to grow so: how many requests, and the largest that has frames, with where it is made.
  struct Unsure {
    int64_t requests = 0;
    int64_t bytes = 0;
    std::string site;  // empty: none has frames
  };
  Unsure unsure;
  bool has_evaluation = false;
  bool has_saving = false;

  [[nodiscard]] int64_t base_value() const { return values.back(); }
  // Is there scratch at that value that neither recordings nor measurements tell?
  [[nodiscard]] bool is_guessed(int64_t value) const {
    return !guesses.empty() || !explained.empty() || (forecast && !forecast->is_sure(value));
  }
};

// Errors: recordings-differ (the first difference), values-unknown, values-wrong, no-history, run-failed.
[[nodiscard]] Result<ScalingModel> scale(const std::vector<ScalingInput>& inputs,
                                         const std::optional<std::vector<int64_t>>& values);

// The requests of a run at `value`. Where scratch is guessed, variants from 1 on guess them otherwise.
[[nodiscard]] RequestStream requests_at(const ScalingModel& model, int64_t value, uint32_t variant = 0);
// The same, but at a value that was recorded the recording's own.
[[nodiscard]] RequestStream run_at(const ScalingModel& model, int64_t value, uint32_t variant = 0);
[[nodiscard]] bool is_recorded(const ScalingModel& model, int64_t value);

}  // namespace oomscope
