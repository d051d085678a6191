// An index out of range can end in a cuBLAS error that names memory.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy check_indices() {
  return {.id = "check-indices",
          .page = "library-failure",
          .effect = Effect::unknown,
          .applies = is_any_case,
          .snippets = [](const Circumstances&) {
            return python(R"(rows = model.get_input_embeddings().num_embeddings
assert 0 <= int(ids.min()) and int(ids.max()) < rows)");
          }};
}

}  // namespace oomscope
