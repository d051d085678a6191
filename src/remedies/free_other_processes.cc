// Who holds the card, and how to end it.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy free_other_processes() {
  return {.id = "free-other-processes",
          .page = "other-memory-on-card",
          .effect = Effect::figures,
          .applies = is_gpu_case,
          .snippets = [](const Circumstances& circumstances) {
            if (circumstances.is_rocm)
              return bash(
                  "rocm-smi --showpids  # amd-smi process in newer releases\nfuser -v /dev/kfd\n"
                  "kill -TERM PID  # KILL only if it stays");
            return std::vector<Snippet>{{Place::bash,
                                         "nvidia-smi --query-compute-apps=pid,used_memory,name --format=csv\nfuser -v "
                                         "/dev/nvidia*\nkill -TERM PID  # KILL only if it stays"},
                                        {Place::powershell, "nvidia-smi\nStop-Process -Id PID"},
                                        {Place::cmd, "nvidia-smi\ntaskkill /PID PID"}};
          }};
}

}  // namespace oomscope
