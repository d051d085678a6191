#include "evidence/stack_bytes.h"

#include <cstring>

#include "base/golden.h"
#include "pickle/load.h"
#include "pickle/opcode.h"

namespace oomscope {
namespace {

constexpr uint8_t kGet = static_cast<uint8_t>(Opcode::binget);
constexpr uint8_t kLongGet = static_cast<uint8_t>(Opcode::long_binget);
// The event must end behind its stack, so that no stack is made for an event that will not match.
constexpr uint8_t kEventEnd = static_cast<uint8_t>(Opcode::setitems);

}  // namespace

const uint8_t* StackBytes::find(const uint8_t* cursor, const uint8_t* end, StackId& stack) {
  uint64_t hash = hash_seed();
  const uint8_t* at = cursor;
  while (at + 5 < end && (*at == kLongGet || *at == kGet)) {
    bool is_long = *at == kLongGet;
    hash = (hash ^ (is_long ? load_u32(at + 1) : at[1])) * kGolden;
    hash ^= hash >> 32;
    at += is_long ? 5 : 2;
  }
  if (end - at < 2 || at[0] != static_cast<uint8_t>(Opcode::appends) || at[1] != kEventEnd) return nullptr;
  ++at;
  std::span<const uint8_t> bytes(cursor, at);
  size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  while (slots_[slot] != 0) {
    const Entry& entry = entries_[slots_[slot]];
    bool is_same = entry.hash == hash && entry.length == bytes.size() &&
                   std::memcmp(bytes_.data() + entry.offset, cursor, bytes.size()) == 0;
    if (is_same) break;
    slot = (slot + 1) & mask;
  }
  if (slots_[slot] == 0 && !add(bytes, hash, slot)) return nullptr;
  uint32_t found = slots_[slot] != 0 ? slots_[slot] : static_cast<uint32_t>(entries_.size() - 1);
  entries_[last_].next_before = std::exchange(entries_[last_].next, found);
  last_ = found;
  stack = entries_[found].stack;
  return at;
}

// False: not all of the entries are frames.
bool StackBytes::add(std::span<const uint8_t> bytes, uint64_t hash, size_t slot) {
  frame_ids_.clear();
  for (size_t i = 0; i + 1 < bytes.size();) {
    bool is_long = bytes[i] == kLongGet;
    uint32_t index = is_long ? load_u32(bytes.data() + i + 1) : bytes[i + 1];
    i += is_long ? 5 : 2;
    if (!memo_.has(index) || memo_.get(index).tag() != MemoTag::frame) return false;
    frame_ids_.push_back(memo_.get(index).index());
  }
  StackId stack = tables_.stacks.intern_stack(frame_ids_);
  Entry entry{hash, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(bytes.size()), stack, 0, 0};
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  slots_[slot] = static_cast<uint32_t>(entries_.size());
  entries_.push_back(entry);
  if (entries_.size() * 2 <= slots_.size()) return true;
  slots_.assign(slots_.size() * 2, 0);
  size_t mask = slots_.size() - 1;
  for (uint32_t index = 1; index < entries_.size(); ++index) {
    size_t place = entries_[index].hash & mask;
    while (slots_[place] != 0) place = (place + 1) & mask;
    slots_[place] = index;
  }
  return true;
}

const uint8_t* StackBytes::read_single(const uint8_t* cursor, const uint8_t* end, StackId& stack) {
  if (end - cursor < 7 || (*cursor != kLongGet && *cursor != kGet)) return nullptr;
  bool is_long = *cursor == kLongGet;
  uint32_t index = is_long ? load_u32(cursor + 1) : cursor[1];
  const uint8_t* at = cursor + (is_long ? 5 : 2);
  if (at[0] != static_cast<uint8_t>(Opcode::append) || at[1] != kEventEnd) return nullptr;
  if (!memo_.has(index) || memo_.get(index).tag() != MemoTag::frame) return nullptr;
  uint32_t frame = memo_.get(index).index();
  stack = tables_.stacks.intern_stack({&frame, 1});
  return at + 1;
}

void StackBytes::clear() {
  bytes_.clear();
  entries_.assign(1, Entry{});
  slots_.assign(kFirstSlots, 0);  // few, since a hostile file can ask for this at every event
  last_ = 0;
}

int64_t StackBytes::memory_bytes() const {
  return static_cast<int64_t>(bytes_.capacity() + entries_.capacity() * sizeof(Entry) + slots_.capacity() * 4 +
                              frame_ids_.capacity() * 4);
}

}  // namespace oomscope
