// Caveat: we went on, but the result deserves less trust. Caveats travel with the data up to the report and stand
// beside the number that they weaken.
#pragma once

#include <string>
#include <vector>

namespace oomscope {

enum class CaveatSource {
  recording,  // the evidence is incomplete or damaged
  model,      // we chose, estimated or left something out
};

struct Caveat {
  std::string code;  // stable, kebab-case
  std::string text;  // one sentence, lower case, no full stop
  CaveatSource source = CaveatSource::recording;
  bool operator==(const Caveat&) const = default;
};

using Caveats = std::vector<Caveat>;

}  // namespace oomscope
