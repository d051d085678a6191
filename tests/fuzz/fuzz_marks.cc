// Any bytes as SNAPSHOT.marks.json: never a crash; what is no such file adds nothing.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "evidence/marks_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oomscope;
  Snapshot snapshot;
  snapshot.traces.resize(1);
  const bool added = add_marks(std::string_view(reinterpret_cast<const char*>(data), size), snapshot);
  if (!added && !snapshot.annotations.empty()) std::abort();
  return 0;
}
