// Names in place of descriptors.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy sharing_strategy() {
  return {.id = "sharing-strategy",
          .page = "descriptors",
          .effect = Effect::figures,
          .applies = is_loader_case,
          .snippets = [](const Circumstances&) {
            return python(R"(import torch.multiprocessing
torch.multiprocessing.set_sharing_strategy("file_system"))");
          }};
}

}  // namespace oomscope
