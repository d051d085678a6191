#include "types/settings_warnings.h"

#include <algorithm>
#include <string>

namespace oomscope {
namespace {

void add(Caveats& warnings, std::string code, std::string text) {
  warnings.push_back({.code = std::move(code), .text = std::move(text), .source = CaveatSource::model});
}

void add_roundup_warnings(const AllocatorSettings& settings, const SettingsFacts& facts, SettingsParser parser,
                          Caveats& warnings) {
  const bool all_one = std::all_of(settings.roundup_power2_divisions.begin(), settings.roundup_power2_divisions.end(),
                                   [](int64_t divisions) { return divisions == 1; });
  if (facts.has_roundup && all_one) {
    add(warnings, "settings-roundup-one",
        parser == SettingsParser::unified
            ? "roundup_power2_divisions:1 rounds nothing up; 2, 4 and 8 do"
            : "roundup_power2_divisions:1 rounds nothing up, and up to torch 2.1 not even to 512 bytes");
  }
  if (facts.roundup_list_pairs > 1) {
    add(warnings, "settings-roundup-interval",
        "in a roundup_power2_divisions list, B:D applies to requests from B to 2B MiB (the first pair also to all "
        "below); PyTorch's documentation describes it one interval lower");
  }
  if (facts.roundup_fill_overwrites) {
    add(warnings, "settings-roundup-fill",
        "up to torch 2.8 the > of a roundup_power2_divisions list also overwrites the last boundary before it");
  }
  if (facts.roundup_list_has_zero && parser == SettingsParser::torch_2_0) {
    add(warnings, "settings-roundup-zero", "0 in a roundup_power2_divisions list is an error up to torch 2.1");
  }
}

}  // namespace

void add_settings_warnings(const AllocatorSettings& settings, const SettingsFacts& facts, SettingsParser parser,
                           Caveats& warnings) {
  const bool has_threshold = settings.garbage_collection_threshold > 0;
  if (settings.backend == "cudaMallocAsync") {
    add(warnings, "settings-async-backend",
        "backend:cudaMallocAsync ignores max_split_size_mb, roundup_power2_divisions and garbage_collection_threshold, "
        "and has no blocks to record or replay");
  }
  if (has_threshold && !(settings.per_process_memory_fraction < 1.0)) {
    add(warnings, "settings-gc-without-limit",
        "garbage_collection_threshold does nothing unless the process has a memory limit: "
        "torch.cuda.set_per_process_memory_fraction");
  }
  if (has_threshold && settings.expandable_segments) {
    add(warnings, "settings-gc-expandable", "garbage collection never frees expandable segments");
  }
  // get_free_block refuses a free block of max_split_size or more to every smaller request.
  if (facts.has_max_split && settings.max_split_size_bytes <= settings.large_segment_size_bytes) {
    add(warnings, "settings-max-split-minimum",
        "max_split_size_mb equal to the large segment size is a trap: a wholly free segment of that size never again "
        "serves a request of 1 to 10 MiB, so each such request takes a new segment");
  }
  if (facts.has_max_split && settings.expandable_segments) {
    add(warnings, "settings-max-split-expandable",
        "max_split_size_mb does not limit splitting in expandable segments; it only keeps large free blocks from "
        "smaller requests");
  }
  if (facts.has_non_split_rounding && !facts.has_max_split) {
    add(warnings, "settings-rounding-without-split",
        "max_non_split_rounding_mb does nothing without max_split_size_mb");
  }
  add_roundup_warnings(settings, facts, parser, warnings);
}

}  // namespace oomscope
