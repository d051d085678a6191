#include "types/allocator_settings.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <vector>

#include "base/bytes_text.h"
#include "types/limits.h"

namespace oomscope {
namespace {

using RoundupTable = std::array<int64_t, 16>;

// A round-up list: entries for the indices `first` to `last` (those that need one), then perhaps `>:fill`.
struct RoundupList {
  size_t first = 0;
  size_t last = 0;
  std::optional<int64_t> fill;
};

bool is_listed(const RoundupTable& table, const RoundupList& list, size_t index) {
  return index == list.first || index == list.last || table[index] != 0;
}

// What `parser` makes of the list; see read_roundup_pair in settings_parser.cc.
RoundupTable table_of(const RoundupTable& table, const RoundupList& list, SettingsParser parser) {
  RoundupTable result{};
  for (size_t k = 0; k < list.first; ++k) result[k] = table[list.first];
  for (size_t k = list.first; k <= list.last; ++k) result[k] = table[k];
  if (list.fill) {
    const size_t start = list.last + (parser == SettingsParser::unified ? 1 : 0);
    std::fill(result.begin() + static_cast<std::ptrdiff_t>(start), result.end(), *list.fill);
  }
  return result;
}

std::string list_text(const RoundupTable& table, const RoundupList& list) {
  std::string text = "[";
  for (size_t k = list.first; k <= list.last; ++k) {
    if (!is_listed(table, list, k)) continue;
    text += std::to_string(int64_t{1} << k) + ":" + std::to_string(table[k]) + ",";
  }
  if (list.fill) {
    text += ">:" + std::to_string(*list.fill);
  } else {
    text.pop_back();
  }
  return text + "]";
}

// The table has few lists that make it (16 * 16 * 2 at most): try all and keep the shortest, the first of equals.
std::string roundup_text(const RoundupTable& table, SettingsParser parser) {
  const bool uniform = std::all_of(table.begin(), table.end(), [&](int64_t value) { return value == table[0]; });
  if (uniform) return std::to_string(table[0]);
  std::string best;
  for (size_t first = 0; first < table.size() && table[first] == table[0]; ++first) {  // it fills all below
    for (size_t last = first; last < table.size(); ++last) {
      for (const bool fills : {false, true}) {
        RoundupList list{.first = first, .last = last, .fill = {}};
        if (fills) list.fill = table.back();
        if (table_of(table, list, parser) != table) continue;
        std::string text = list_text(table, list);
        if (best.empty() || text.size() < best.size()) best = std::move(text);
      }
    }
  }
  return best;
}

std::string number_text(double value) {
  std::array<char, 40> buffer{};
  const std::to_chars_result end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return std::string(buffer.data(), end.ptr);
}

std::string bool_text(bool value) { return value ? "True" : "False"; }

// Moves one recorded value into the settings; true where the conf string had said otherwise.
template <class T>
bool take(const T& recorded, T& target) {
  const bool differs = recorded != target;
  target = recorded;
  return differs;
}

// PyTorch takes 0 and powers of two alone, so it cannot have written anything else.
std::optional<RoundupTable> recorded_table(const RecordedSettings& recorded) {
  const std::vector<int64_t>& rows = recorded.roundup_power2_divisions;
  const bool is_possible = std::all_of(rows.begin(), rows.end(), [](int64_t divisions) {
    return divisions == 0 || (divisions > 0 && std::has_single_bit(static_cast<uint64_t>(divisions)));
  });
  if (rows.size() != 16 || !is_possible) return {};
  RoundupTable table{};
  std::copy(rows.begin(), rows.end(), table.begin());
  return table;
}

}  // namespace

std::string to_conf_string(const AllocatorSettings& settings, SettingsParser parser) {
  const AllocatorSettings defaults;
  std::string conf;
  const auto add = [&](std::string_view key, const std::string& value) {
    conf += (conf.empty() ? "" : ",") + std::string(key) + ":" + value;
  };
  const auto mib = [](int64_t size_bytes) { return std::to_string(size_bytes / kMiB); };
  if (settings.backend != defaults.backend) add("backend", settings.backend);
  if (settings.expandable_segments) add("expandable_segments", bool_text(true));
  if (settings.max_split_size_bytes != kUnlimitedBytes) add("max_split_size_mb", mib(settings.max_split_size_bytes));
  if (settings.large_segment_size_bytes != defaults.large_segment_size_bytes) {
    add("large_segment_size_mb", mib(settings.large_segment_size_bytes));
  }
  if (settings.max_non_split_rounding_bytes != settings.large_segment_size_bytes) {
    add("max_non_split_rounding_mb", mib(settings.max_non_split_rounding_bytes));
  }
  if (settings.garbage_collection_threshold > 0) {
    add("garbage_collection_threshold", number_text(settings.garbage_collection_threshold));
  }
  if (settings.roundup_power2_divisions != defaults.roundup_power2_divisions) {
    add("roundup_power2_divisions", roundup_text(settings.roundup_power2_divisions, parser));
  }
  if (settings.per_process_memory_fraction != defaults.per_process_memory_fraction) {
    add("per_process_memory_fraction", number_text(settings.per_process_memory_fraction));
  }
  if (settings.release_lock_on_cudamalloc) add("release_lock_on_cudamalloc", bool_text(true));
  if (settings.graph_capture_record_stream_reuse) add("graph_capture_record_stream_reuse", bool_text(true));
  if (settings.throw_on_cudamalloc_oom) add("throw_on_cudamalloc_oom", bool_text(true));
  if (settings.pinned_use_cuda_host_register) add("pinned_use_cuda_host_register", bool_text(true));
  if (settings.pinned_use_background_threads) add("pinned_use_background_threads", bool_text(true));
  if (settings.pinned_num_register_threads != defaults.pinned_num_register_threads) {
    add("pinned_num_register_threads", std::to_string(settings.pinned_num_register_threads));
  }
  if (settings.pinned_reserve_segment_size_mb != defaults.pinned_reserve_segment_size_mb) {
    add("pinned_reserve_segment_size_mb", std::to_string(settings.pinned_reserve_segment_size_mb));
  }
  return conf;
}

ParsedSettings from_recorded(const RecordedSettings& recorded, SettingsParser parser) {
  ParsedSettings result;
  const Result<ParsedSettings> parsed = parse_allocator_settings(recorded.conf.value_or(""), parser);
  if (parsed) {
    result = *parsed;
  } else {
    result.warnings.push_back(
        {.code = "settings-recorded-unreadable", .values = parsed.error().values, .source = CaveatSource::recording});
    result.warnings.back().values.emplace_back("error", parsed.error().what);
  }
  AllocatorSettings& settings = result.settings;
  bool differs = false;
  if (recorded.max_split_size_bytes) {
    const int64_t bytes = *recorded.max_split_size_bytes;
    differs |= take(bytes < 0 || bytes >= kMaxSizeBytes ? kUnlimitedBytes : bytes, settings.max_split_size_bytes);
  }
  // PyTorch takes no other value, so it cannot have written one.
  const bool collects = recorded.garbage_collection_threshold && *recorded.garbage_collection_threshold >= 0 &&
                        *recorded.garbage_collection_threshold < 1;
  if (collects) {
    differs |= take(*recorded.garbage_collection_threshold, settings.garbage_collection_threshold);
  }
  if (recorded.expandable_segments) differs |= take(*recorded.expandable_segments, settings.expandable_segments);
  if (const std::optional<RoundupTable> table = recorded_table(recorded)) {
    differs |= take(*table, settings.roundup_power2_divisions);
  }
  if (differs && parsed && recorded.conf) {
    result.warnings.push_back({.code = "settings-recorded-differ", .values = {}, .source = CaveatSource::recording});
  }
  return result;
}

}  // namespace oomscope
