// Activations grow with the number of pixels or tokens, attention without a fused kernel with its square.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy smaller_input() {
  return {
      .id = "smaller-input",
      .page = "input-size",
      .effect = Effect::transform,
      .applies =
          [](const Circumstances& circumstances) { return is_gpu_case(circumstances) || is_host_case(circumstances); },
      .snippets =
          [](const Circumstances& circumstances) {
            if (circumstances.framework == "transformers")
              return python(R"(batch = tokenizer(texts, truncation=True, max_length=1024, return_tensors="pt"))");
            if (!circumstances.has_images) return python("tokens = tokens[:, :1024]");
            const std::string smooth = torch_is_at_least(circumstances, 1, 11) ? "antialias=True, " : "";
            return python("images = torch.nn.functional.interpolate(\n    images, size=(512, 512), " + smooth +
                          "mode=\"bilinear\")");
          },
      .saved_bytes =
          [](const Figures& figures) {
            return figures.activations ? std::optional<int64_t>(*figures.activations / 2) : std::nullopt;
          }};
}

}  // namespace oomscope
