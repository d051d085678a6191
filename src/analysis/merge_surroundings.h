// What several texts tell of one machine and one program.
#pragma once

#include "types/text_evidence.h"

namespace oomscope {

// Adds what `to` does not know yet; what an earlier text told stays.
void merge_surroundings(const Surroundings& from, Surroundings& to);

}  // namespace oomscope
