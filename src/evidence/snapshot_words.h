// The words that a snapshot's layout is made of: keys, actions, states. They are interned first and in this order,
// so a word's StringId is its enumerator, and a dictionary's keys fit one 64-bit set.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "types/snapshot.h"

namespace oomscope {

enum class Word : uint32_t {
  none,
  // Keys. All below 64: see KeySet.
  segments,
  device_traces,
  allocator_settings,
  external_annotations,
  host_segments,
  device,
  address,
  total_size,
  allocated_size,
  active_size,
  requested_size,
  stream,
  segment_type,
  segment_pool_id,
  is_expandable,
  frames,
  blocks,
  size,
  state,
  history,
  addr,
  real_size,
  cpp_frames,
  action,
  device_free,
  time_us,
  compile_context,
  user_metadata,
  pool_id,
  internal_metadata,
  name,
  filename,
  line,
  stage,
  conf,
  max_split_size,
  garbage_collection_threshold,
  expandable_segments,
  roundup_power2_divisions,
  end_of_keys,
  // Values.
  alloc = end_of_keys,
  free_requested,
  free_completed,
  segment_alloc,
  segment_free,
  segment_map,
  segment_unmap,
  oom,
  snapshot,
  annotate,
  active_allocated,
  active_pending_free,
  active_awaiting_free,
  inactive,
  small,
  large,
  start,
  end,
  end_of_words,
};

static_assert(static_cast<uint32_t>(Word::end_of_keys) <= 64);

// Interns all words; `strings` must be new.
void intern_words(StringTable& strings);

// The word that a text is, or none if it is none of them.
[[nodiscard]] inline Word word_of(StringId id) {
  return static_cast<uint32_t>(id) < static_cast<uint32_t>(Word::end_of_words) ? static_cast<Word>(id) : Word::none;
}

[[nodiscard]] inline Action action_of(StringId id) {
  static_assert(static_cast<uint32_t>(Word::annotate) - static_cast<uint32_t>(Word::alloc) ==
                static_cast<uint32_t>(Action::annotate));
  uint32_t index = static_cast<uint32_t>(id) - static_cast<uint32_t>(Word::alloc);
  return index < static_cast<uint32_t>(Action::unknown) ? static_cast<Action>(index) : Action::unknown;
}

// Which keys a dictionary has.
class KeySet {
 public:
  void add(StringId id) {
    if (static_cast<uint32_t>(id) < static_cast<uint32_t>(Word::end_of_keys))
      bits_ |= uint64_t{1} << static_cast<uint32_t>(id);
  }
  [[nodiscard]] bool has(Word word) const { return ((bits_ >> static_cast<uint32_t>(word)) & 1) != 0; }

 private:
  uint64_t bits_ = 0;
};

}  // namespace oomscope
