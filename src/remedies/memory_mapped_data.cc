// Python objects are copied into each worker as they are looked at; arrays and mapped files are shared.
#include "remedies/catalogue.h"
#include "remedies/snippets.h"

namespace oomscope {

Remedy memory_mapped_data() {
  return {.id = "memory-mapped-data",
          .page = "loader-worker",
          .effect = Effect::figures,
          .applies = is_loader_case,
          .snippets = [](const Circumstances&) {
            return python(R"(import numpy
samples = numpy.load("samples.npy", mmap_mode="r")  # shared by all workers)");
          }};
}

}  // namespace oomscope
