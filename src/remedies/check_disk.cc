// A full disk can look like a failed allocation.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy check_disk() {
  return {.id = "check-disk",
          .page = "not-memory",
          .effect = Effect::unknown,
          .applies = is_any_case,
          .snippets = [](const Circumstances&) { return bash(R"(df -h . /tmp /dev/shm)"); }};
}

}  // namespace oomscope
