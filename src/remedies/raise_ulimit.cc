// Each shared tensor is an open file in the main process.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy raise_ulimit() {
  return {.id = "raise-ulimit",
          .page = "descriptors",
          .effect = Effect::figures,
          .applies = is_loader_case,
          .snippets = [](const Circumstances&) {
            return std::vector<Snippet>{{Place::bash, "ulimit -n 65536"},
                                        {Place::sbatch, "ulimit -n 65536"},
                                        {Place::python,
                                         "import resource\nlimits = "
                                         "resource.getrlimit(resource.RLIMIT_NOFILE)\nresource.setrlimit(resource."
                                         "RLIMIT_NOFILE, (limits[1], limits[1]))"}};
          }};
}

}  // namespace oomscope
