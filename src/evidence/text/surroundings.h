// What a text tells of the machine and the program beside its messages.
#pragma once

#include <string_view>

#include "types/text_evidence.h"

namespace oomscope {

// Hints: versions, cards, Windows, WSL, notebooks, containers, Slurm, the loader's arguments, frameworks, settings.
// What was found before stays.
void look_around(std::string_view raw, Surroundings& surroundings);

}  // namespace oomscope
