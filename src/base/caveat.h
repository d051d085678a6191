// Caveat: we went on, but the result deserves less trust. Caveats travel with the data up to the report and stand
// beside the number that they weaken.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/values.h"

namespace oomscope {

enum class CaveatSource {
  recording,  // the evidence is incomplete or damaged
  model,      // we chose, estimated or left something out
};

struct Caveat {
  std::string code;  // stable, kebab-case; its sentence is "caveat.CODE" in src/words/
  Values values;     // what stands for {name} in that sentence
  CaveatSource source = CaveatSource::recording;
  bool operator==(const Caveat&) const = default;
};

using Caveats = std::vector<Caveat>;

// Where what is known meanwhile makes it untrue.
inline void drop_caveat(std::string_view code, Caveats& caveats) {
  std::erase_if(caveats, [code](const Caveat& caveat) { return caveat.code == code; });
}

}  // namespace oomscope
