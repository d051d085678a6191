// DataParallel gathers outputs on device 0, which therefore fills first.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy distributed_data_parallel() {
  return {.id = "distributed-data-parallel",
          .page = "device-imbalance",
          .effect = Effect::transform,
          .applies =
              [](const Circumstances& circumstances) {
                return is_gpu_case(circumstances) && may_have_several_cards(circumstances);
              },
          .snippets =
              [](const Circumstances& circumstances) {
                return python(R"(model = DistributedDataParallel(model.to(local_rank), device_ids=[local_rank]))") +
                       bash(torch_launcher(circumstances));
              }};
}

}  // namespace oomscope
