#include "types/settings_warnings.h"

#include <algorithm>
#include <string>

namespace oomscope {
namespace {

void add(Caveats& warnings, std::string code) {
  warnings.push_back({.code = std::move(code), .values = {}, .source = CaveatSource::model});
}

void add_roundup_warnings(const AllocatorSettings& settings, const SettingsFacts& facts, SettingsParser parser,
                          Caveats& warnings) {
  const bool all_one = std::all_of(settings.roundup_power2_divisions.begin(), settings.roundup_power2_divisions.end(),
                                   [](int64_t divisions) { return divisions == 1; });
  if (facts.has_roundup && all_one) add(warnings, "settings-roundup-one");
  if (facts.roundup_list_pairs > 1) add(warnings, "settings-roundup-interval");
  if (facts.roundup_fill_overwrites) add(warnings, "settings-roundup-fill");
  if (facts.roundup_list_has_zero && parser == SettingsParser::torch_2_0) add(warnings, "settings-roundup-zero");
}

}  // namespace

void add_settings_warnings(const AllocatorSettings& settings, const SettingsFacts& facts, SettingsParser parser,
                           Caveats& warnings) {
  const bool has_threshold = settings.garbage_collection_threshold > 0;
  if (settings.backend == "cudaMallocAsync") add(warnings, "settings-async-backend");
  if (has_threshold && !(settings.per_process_memory_fraction < 1.0)) add(warnings, "settings-gc-without-limit");
  if (has_threshold && settings.expandable_segments) add(warnings, "settings-gc-expandable");
  // get_free_block refuses a free block of max_split_size or more to every smaller request.
  if (facts.has_max_split && settings.max_split_size_bytes <= settings.large_segment_size_bytes)
    add(warnings, "settings-max-split-minimum");
  if (facts.has_max_split && settings.expandable_segments) add(warnings, "settings-max-split-expandable");
  if (facts.has_non_split_rounding && !facts.has_max_split) add(warnings, "settings-rounding-without-split");
  add_roundup_warnings(settings, facts, parser, warnings);
}

}  // namespace oomscope
