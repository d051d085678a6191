// Each shared tensor is an open file in the main process.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy raise_ulimit() {
  return {.id = "raise-ulimit",
          .page = "descriptors",
          .effect = Effect::figures,
          .applies = is_loader_case,
          .snippets = [](const Circumstances& circumstances) {
            const std::string raised = "ulimit -n " + raised_count(circumstances.limits.open_files, 65536);
            return std::vector<Snippet>{{Place::bash, raised},
                                        {Place::sbatch, raised},
                                        {Place::python,
                                         "import resource\nlimits = "
                                         "resource.getrlimit(resource.RLIMIT_NOFILE)\nresource.setrlimit(resource."
                                         "RLIMIT_NOFILE, (limits[1], limits[1]))"}};
          }};
}

}  // namespace oomscope
