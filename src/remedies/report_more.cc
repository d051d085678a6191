// What to switch on so that the next failure explains itself.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy report_more() {
  return {.id = "report-more",
          .page = "none",
          .effect = Effect::unknown,
          .applies = is_any_case,
          .snippets = [](const Circumstances& circumstances) {
            // Recordings exist since 1.13, the table since 1.4.
            if (!torch_is_at_least(circumstances, 1, 4))
              return python("print(torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())");
            if (!torch_is_at_least(circumstances, 1, 13)) return python("print(torch.cuda.memory_summary())");
            const char* record = torch_is_at_least(circumstances, 2, 1)
                                     ? "torch.cuda.memory._record_memory_history(max_entries=1_000_000)"
                                     : "torch.cuda.memory._record_memory_history(\n    True, "
                                       "trace_alloc_max_entries=1_000_000, trace_alloc_record_context=True)";
            return python(std::string("import torch\n") + record +
                          "\ntorch._C._cuda_attach_out_of_memory_observer(\n    lambda *_: "
                          "torch.cuda.memory._dump_snapshot(\"oom_snapshot.pickle\"))");
          }};
}

}  // namespace oomscope
