#include "plan/measures/list.h"

namespace oomscope {

std::vector<Measure> all_measures(int64_t ranks) {
  return {
      fused_step(),
      multi_tensor_step(),
      single_tensor_step(),
      sgd_with_momentum(),
      sgd_without_momentum(),
      eight_bit_optimizer(),
      adafactor_optimizer(),
      offloaded_optimizer(),
      offloaded_parameters(),
      accumulation(2),
      accumulation(4),
      accumulation(8),
      accumulation(16),
      checkpoint_all(),
      checkpoint_every(2),
      checkpoint_every(3),
      checkpoint_every(4),
      checkpoint_selective(),
      autocast_bf16(),
      pure_bf16(),
      attention_without_weights(),
      fused_attention_kernel(),
      eager_attention(),
      chunked_cross_entropy(),
      without_gradients(),
      gradients_set_to_none(),
      gradient_bucket_views(),
      zero_1(ranks),
      zero_2(ranks),
      zero_3(ranks),
  };
}

std::optional<Measure> find_measure(std::string_view id) {
  constexpr int64_t kAnyRanks = 8;
  for (Measure& measure : all_measures(kAnyRanks)) {
    if (measure.id == id) return std::move(measure);
  }
  return std::nullopt;
}

Phrase name_of(const Measure& measure) {
  return Phrase{.key = "measure." + std::string(measure.name)}.with("number", std::to_string(measure.number));
}

}  // namespace oomscope
