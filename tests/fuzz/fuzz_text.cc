// Any bytes as a log: never a crash, and never slow.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "analysis/text_facts.h"
#include "evidence/text/text_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oomscope;
  const std::vector<TextEvidence> logs = {read_text({reinterpret_cast<const char*>(data), size}, "fuzz")};
  const TextFacts facts = find_text_facts(logs);
  return facts.logs.empty() ? 1 : 0;
}
