#include "replay/address_space.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "caching/sizes.h"

namespace oomscope {
namespace {

constexpr int64_t kChunk = int64_t{32} << 20;
constexpr uint64_t kTop = uint64_t{0x7f0000000000};        // where the first chunk ends
constexpr uint64_t kRangeBase = uint64_t{0x100000000000};  // expandable ranges rise from here
constexpr uint64_t kRising = uint64_t{0x200000000000};     // AddressPolicy::up starts here

}  // namespace

AddressSpace::AddressSpace(AddressPolicy policy, int64_t total_bytes, const AddressHints& hints)
    : policy_(policy),
      total_bytes_(total_bytes),
      top_(kTop),
      lowest_(kTop),
      highest_(kRising),
      next_range_(kRangeBase) {
  if (policy != AddressPolicy::chunks || hints.first_segment == 0) return;
  first_segment_ = hints.first_segment;
  top_ = first_segment_;
  for (const auto& [address, size] : hints.holes) {
    holes_[address] = size;
    // The context's own chunk is never empty: it counts as larger than all that can be freed in it.
    chunks_[address] = size + kSmallBuffer + 1;
    top_ = std::min(top_, address);
  }
}

uint64_t AddressSpace::allocate(int64_t size, StreamId) {
  const uint64_t bytes = static_cast<uint64_t>(size);
  switch (policy_) {
    case AddressPolicy::down: return lowest_ -= bytes;
    case AddressPolicy::up: highest_ += bytes; return highest_ - bytes;
    case AddressPolicy::chunks: return allocate_in_chunk(size);
  }
  return 0;
}

uint64_t AddressSpace::allocate_in_chunk(int64_t size) {
  if (first_segment_ != 0) {
    const uint64_t first = std::exchange(first_segment_, 0);
    chunks_[first] = size + 1;
    return first;
  }
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    if (hole->second < size) continue;
    const auto [address, room] = *hole;
    holes_.erase(hole);
    if (room > size) holes_[address + static_cast<uint64_t>(size)] = room - size;
    return address;
  }
  const int64_t chunk = round_up(size, kChunk);
  uint64_t top = top_;
  for (auto entry = chunks_.rbegin(); entry != chunks_.rend(); ++entry) {
    if (entry->first >= top_) continue;  // the context's
    if (top - (entry->first + static_cast<uint64_t>(entry->second)) >= static_cast<uint64_t>(chunk)) break;
    top = entry->first;
  }
  const uint64_t base = top - static_cast<uint64_t>(chunk);
  chunks_[base] = chunk;
  if (chunk > size) holes_[base + static_cast<uint64_t>(size)] = chunk - size;
  return base;
}

void AddressSpace::release(uint64_t address, int64_t size) {
  if (policy_ != AddressPolicy::chunks) return;
  auto chunk = std::prev(chunks_.upper_bound(address));
  const uint64_t chunk_end = chunk->first + static_cast<uint64_t>(chunk->second);
  auto next = holes_.lower_bound(address);
  if (next != holes_.end() && next->first == address + static_cast<uint64_t>(size) && next->first < chunk_end) {
    size += next->second;
    next = holes_.erase(next);
  }
  if (next != holes_.begin()) {
    auto before = std::prev(next);
    if (before->first + static_cast<uint64_t>(before->second) == address && before->first >= chunk->first) {
      address = before->first;
      size += before->second;
      holes_.erase(before);
    }
  }
  if (size == chunk->second) {
    chunks_.erase(chunk);
  } else {
    holes_[address] = size;
  }
}

uint64_t AddressSpace::reserve(int64_t size, int64_t page) {
  const uint64_t address = next_range_;
  next_range_ += static_cast<uint64_t>(round_up(size, page)) + (uint64_t{4} << 20);
  return address;
}

}  // namespace oomscope
