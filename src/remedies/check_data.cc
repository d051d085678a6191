// A wrong path or a damaged sample shows as an absurd request.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy check_data() {
  return {.id = "check-data",
          .page = "not-memory",
          .effect = Effect::unknown,
          .applies = is_any_case,
          .snippets = [](const Circumstances&) {
            return python(R"(for i in range(len(dataset)):
    sample = dataset[i]  # which one fails, or is far larger?)");
          }};
}

}  // namespace oomscope
