// Containers get 64 MiB of /dev/shm unless they ask.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy larger_shm() {
  return {.id = "larger-shm",
          .page = "shared-memory",
          .effect = Effect::figures,
          .applies =
              [](const Circumstances& circumstances) {
                return circumstances.kind == Kind::shm_exhausted ||
                       circumstances.kind == Kind::dataloader_worker_killed;
              },
          .snippets =
              [](const Circumstances& circumstances) {
                const std::string remount =
                    "mount -o remount,size=" + raised_gib(circumstances.limits.shm_bytes, "16") + "G /dev/shm";
                if (circumstances.limits.is_host_shm) return bash(remount + "  # on the host, whose /dev/shm it is");
                const std::string in_container =
                    "docker run --shm-size=" + raised_gib(circumstances.limits.shm_bytes, "16") +
                    "g IMAGE\n# Kubernetes: an emptyDir volume with medium: Memory, mounted at "
                    "/dev/shm";
                return bash(circumstances.is_container ? in_container
                                                       : in_container + "\n" + remount + "  # without a container");
              }};
}

}  // namespace oomscope
