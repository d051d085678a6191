#include "evidence/stack_interner.h"

#include <algorithm>

#include "base/golden.h"

namespace oomscope {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * kGolden;
  return hash ^ (hash >> 32);
}

uint64_t hash_frame(const Frame& frame) {
  uint64_t names = (static_cast<uint64_t>(frame.name) << 32) | static_cast<uint64_t>(frame.filename);
  return mix(mix(hash_seed(), names), frame.line);
}

uint64_t hash_stack(std::span<const uint32_t> frame_ids) {
  uint64_t hash = hash_seed() ^ frame_ids.size();
  for (uint32_t id : frame_ids) hash = mix(hash, id);
  return hash;
}

// Twice the slots, all entries placed anew.
template <class HashOf>
void grow(std::vector<uint32_t>& slots, HashOf hash_of) {
  std::vector<uint32_t> old(slots.size() * 2, 0);
  old.swap(slots);
  size_t mask = slots.size() - 1;
  for (uint32_t entry : old) {
    if (entry == 0) continue;
    size_t place = hash_of(entry) & mask;
    while (slots[place] != 0) place = (place + 1) & mask;
    slots[place] = entry;
  }
}

}  // namespace

uint32_t StackInterner::intern_frame(const Frame& frame) {
  size_t mask = frame_slots_.size() - 1;
  size_t slot = hash_frame(frame) & mask;
  while (frame_slots_[slot] != 0) {
    uint32_t id = frame_slots_[slot] - 1;
    if (table_.frames[id] == frame) return id;
    slot = (slot + 1) & mask;
  }
  uint32_t id = static_cast<uint32_t>(table_.frames.size());
  table_.frames.push_back(frame);
  frame_slots_[slot] = id + 1;
  if (table_.frames.size() * 2 > frame_slots_.size()) {
    grow(frame_slots_, [this](uint32_t entry) { return hash_frame(table_.frames[entry - 1]); });
  }
  return id;
}

std::span<const uint32_t> StackInterner::frames_of(uint32_t stack) const {
  return std::span(table_.frame_ids).subspan(table_.starts[stack], table_.starts[stack + 1] - table_.starts[stack]);
}

StackId StackInterner::intern_stack(std::span<const uint32_t> frame_ids) {
  if (frame_ids.empty()) return StackId::none;
  size_t mask = stack_slots_.size() - 1;
  size_t slot = hash_stack(frame_ids) & mask;
  while (stack_slots_[slot] != 0) {
    uint32_t id = stack_slots_[slot];
    if (std::ranges::equal(frames_of(id), frame_ids)) return StackId{id};
    slot = (slot + 1) & mask;
  }
  uint32_t id = static_cast<uint32_t>(table_.size());
  table_.frame_ids.insert(table_.frame_ids.end(), frame_ids.begin(), frame_ids.end());
  table_.starts.push_back(static_cast<uint32_t>(table_.frame_ids.size()));
  stack_slots_[slot] = id;
  if (table_.size() * 2 > stack_slots_.size()) {
    grow(stack_slots_, [this](uint32_t entry) { return hash_stack(frames_of(entry)); });
  }
  return StackId{id};
}

int64_t StackInterner::memory_bytes() const {
  size_t bytes = table_.frames.capacity() * sizeof(Frame) + table_.frame_ids.capacity() * sizeof(uint32_t) +
                 table_.starts.capacity() * sizeof(uint32_t) + frame_slots_.capacity() * sizeof(uint32_t) +
                 stack_slots_.capacity() * sizeof(uint32_t);
  return static_cast<int64_t>(bytes);
}

}  // namespace oomscope
