// StringTable: each distinct text once, found again by a hash table of ids with linear probing. Half of the slots
// stay empty, so a probe touches one cache line nearly always; texts lie one after another in one buffer.
#include "types/snapshot.h"

#include <cstring>

#include "base/golden.h"

namespace oomscope {
namespace {

// FNV-1a over 8-byte words, then mixed: texts here are short and mostly paths that differ at their ends.
uint64_t hash_text(std::string_view text) {
  uint64_t hash = (text.size() ^ hash_seed()) * kGolden;
  const char* bytes = text.data();
  size_t left = text.size();
  while (left >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    hash = (hash ^ word) * kGolden;
    hash ^= hash >> 29;
    bytes += 8;
    left -= 8;
  }
  uint64_t word = 0;
  if (left > 0) std::memcpy(&word, bytes, left);
  hash = (hash ^ word) * kGolden;
  return hash ^ (hash >> 32);
}

}  // namespace

StringTable::StringTable() : offsets_{0, 0}, slots_(64, 0) {}

StringId StringTable::intern(std::string_view text) {
  if (text.empty()) return StringId::none;
  uint64_t hash = hash_text(text);
  size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  while (slots_[slot] != 0) {
    if (this->text(StringId{slots_[slot]}) == text) return StringId{slots_[slot]};
    slot = (slot + 1) & mask;
  }
  uint32_t id = static_cast<uint32_t>(size());
  bytes_.append(text);
  offsets_.push_back(bytes_.size());
  slots_[slot] = id;
  if (size() * 2 > slots_.size()) {
    slots_.assign(slots_.size() * 2, 0);
    mask = slots_.size() - 1;
    for (uint32_t other = 1; other < size(); ++other) {
      size_t place = hash_text(this->text(StringId{other})) & mask;
      while (slots_[place] != 0) place = (place + 1) & mask;
      slots_[place] = other;
    }
  }
  return StringId{id};
}

std::string_view StringTable::text(StringId id) const {
  size_t index = static_cast<size_t>(id);
  if (index + 1 >= offsets_.size()) return {};
  return std::string_view(bytes_).substr(offsets_[index], offsets_[index + 1] - offsets_[index]);
}

std::vector<bool> stacks_that_call(const Snapshot& snapshot, bool (*is_wanted)(std::string_view function)) {
  std::vector<bool> names(snapshot.strings.size());
  bool is_any = false;
  for (uint32_t id = 0; id < names.size(); ++id) {
    names[id] = is_wanted(snapshot.strings.text(StringId{id}));
    is_any = is_any || names[id];
  }
  if (!is_any) return {};
  const StackTable& stacks = snapshot.stacks;
  std::vector<bool> calls(stacks.size());
  for (size_t stack = 0; stack < stacks.size(); ++stack) {
    for (uint32_t f = stacks.starts[stack]; f < stacks.starts[stack + 1]; ++f) {
      if (names[static_cast<size_t>(stacks.frames[stacks.frame_ids[f]].name)]) calls[stack] = true;
    }
  }
  return calls;
}

}  // namespace oomscope
