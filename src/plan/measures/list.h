// Every measure; all_measures() lists them.
#pragma once

#include "plan/measures/measure.h"

namespace oomscope {

[[nodiscard]] Measure fused_step();
[[nodiscard]] Measure single_tensor_step();
[[nodiscard]] Measure sgd_with_momentum();
[[nodiscard]] Measure sgd_without_momentum();
[[nodiscard]] Measure eight_bit_optimizer();
[[nodiscard]] Measure adafactor_optimizer();
[[nodiscard]] Measure offloaded_optimizer();
[[nodiscard]] Measure accumulate_2();
[[nodiscard]] Measure accumulate_4();
[[nodiscard]] Measure accumulate_8();
[[nodiscard]] Measure checkpoint_all();
[[nodiscard]] Measure checkpoint_every_2nd();
[[nodiscard]] Measure checkpoint_selective();
[[nodiscard]] Measure autocast_bf16();
[[nodiscard]] Measure pure_bf16();
[[nodiscard]] Measure fused_attention_kernel();
[[nodiscard]] Measure chunked_cross_entropy();
[[nodiscard]] Measure without_gradients();
[[nodiscard]] Measure gradients_set_to_none();
[[nodiscard]] Measure gradient_bucket_views();
[[nodiscard]] Measure zero_1();
[[nodiscard]] Measure zero_2();
[[nodiscard]] Measure zero_3();

}  // namespace oomscope
