// A few sizes in place of many: a freed block then fits the next request.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy static_shapes() {
  return {.id = "static-shapes",
          .page = "growing-sizes",
          .effect = Effect::replay,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances& circumstances) {
            if (circumstances.framework == "transformers")
              return python(R"(collator = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=64))");
            return python(R"(length = (lengths.max() + 63) // 64 * 64  # pad to multiples of 64)");
          }};
}

}  // namespace oomscope
