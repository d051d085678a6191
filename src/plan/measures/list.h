// Every measure; all_measures() lists them.
#pragma once

#include "plan/measures/measure.h"

namespace oomscope {

[[nodiscard]] Measure fused_step();
[[nodiscard]] Measure multi_tensor_step();
[[nodiscard]] Measure single_tensor_step();
[[nodiscard]] Measure sgd_with_momentum();
[[nodiscard]] Measure sgd_without_momentum();
[[nodiscard]] Measure eight_bit_optimizer();
[[nodiscard]] Measure adafactor_optimizer();
[[nodiscard]] Measure offloaded_optimizer();
[[nodiscard]] Measure offloaded_parameters();
[[nodiscard]] Measure accumulation(int64_t parts);
[[nodiscard]] Measure checkpoint_all();
[[nodiscard]] Measure checkpoint_every(int64_t nth);
[[nodiscard]] Measure checkpoint_selective();
[[nodiscard]] Measure autocast_bf16();
[[nodiscard]] Measure pure_bf16();
[[nodiscard]] Measure fused_attention_kernel();
[[nodiscard]] Measure attention_without_weights();
[[nodiscard]] Measure eager_attention();
[[nodiscard]] Measure chunked_cross_entropy();
[[nodiscard]] Measure without_gradients();
[[nodiscard]] Measure gradients_set_to_none();
[[nodiscard]] Measure gradient_bucket_views();
[[nodiscard]] Measure zero_1(int64_t ranks);
[[nodiscard]] Measure zero_2(int64_t ranks);
[[nodiscard]] Measure zero_3(int64_t ranks);

}  // namespace oomscope
