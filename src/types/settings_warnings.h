// What PyTorch accepts without a word and then ignores, or reads otherwise than its documentation says.
#pragma once

#include "base/caveat.h"
#include "types/allocator_settings.h"

namespace oomscope {

// How the settings were written, which AllocatorSettings no longer shows. Filled by the parser.
struct SettingsFacts {
  bool has_max_split = false;
  bool has_non_split_rounding = false;
  bool has_roundup = false;
  bool roundup_first_seen = false;  // the parser's own: the first pair of a list fills everything below it
  int roundup_list_pairs = 0;       // 0: no list, a single value
  bool roundup_list_has_zero = false;
  bool roundup_fill_overwrites = false;  // torch_2_0: `>` changed the value of the last boundary
};

void add_settings_warnings(const AllocatorSettings& settings, const SettingsFacts& facts, SettingsParser parser,
                           Caveats& warnings);

}  // namespace oomscope
