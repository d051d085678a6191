// Any bytes as peaks.json, context.json and the modules of a marks.json: never a crash, and sizes are never negative.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "evidence/context_file.h"
#include "evidence/modules_beside.h"
#include "evidence/peaks_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oomscope;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const Result<Peaks> peaks = read_peaks(text, "fuzz")) {
    for (const PhasePeak& phase : peaks->phases) {
      if (phase.allocated_bytes < 0 || phase.reserved_bytes < 0) std::abort();
    }
  }
  const std::optional<FailureContext> context = read_context(text);
  if (context && context->others_bytes.value_or(0) < 0) std::abort();
  for (const ModuleUse& module : read_modules(text)) {
    if (module.kept_bytes <= 0) std::abort();
  }
  return 0;
}
