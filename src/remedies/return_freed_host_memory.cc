// glibc keeps freed memory in its arenas: 391 MiB of which 9 MiB were left after malloc_trim.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy return_freed_host_memory() {
  return {.id = "return-freed-host-memory",
          .page = "host-killed",
          .effect = Effect::unknown,
          .applies = is_host_case,
          .snippets = [](const Circumstances&) {
            return environment("MALLOC_ARENA_MAX", "2") + python(R"(import ctypes
ctypes.CDLL("libc.so.6").malloc_trim(0))");
          }};
}

}  // namespace oomscope
