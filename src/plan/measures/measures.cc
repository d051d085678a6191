#include "plan/measures/list.h"

namespace oomscope {

const std::vector<Measure>& all_measures() {
  static const std::vector<Measure> kMeasures = {
      fused_step(),
      single_tensor_step(),
      sgd_with_momentum(),
      sgd_without_momentum(),
      eight_bit_optimizer(),
      adafactor_optimizer(),
      offloaded_optimizer(),
      accumulate_2(),
      accumulate_4(),
      accumulate_8(),
      checkpoint_all(),
      checkpoint_every_2nd(),
      checkpoint_selective(),
      autocast_bf16(),
      pure_bf16(),
      fused_attention_kernel(),
      chunked_cross_entropy(),
      without_gradients(),
      gradients_set_to_none(),
      gradient_bucket_views(),
      zero_1(),
      zero_2(),
      zero_3(),
  };
  return kMeasures;
}

}  // namespace oomscope
