#include "replay/address_space.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "caching/sizes.h"
#include "types/limits.h"

namespace oomscope {
namespace {

constexpr int64_t kChunk = int64_t{32} << 20;
constexpr uint64_t kTop = uint64_t{0x7f0000000000};        // where the first chunk ends
constexpr uint64_t kRangeBase = uint64_t{0x100000000000};  // expandable ranges rise from here
constexpr uint64_t kBottom = uint64_t{0x10000000000};      // no chunk lies below
constexpr uint64_t kHighest = uint64_t{1} << 62;
constexpr uint64_t kRising = uint64_t{0x200000000000};  // AddressPolicy::up starts here

}  // namespace

void FreeSpans::add(uint64_t address, int64_t size) {
  spans_[address] = size;
  by_size_[size].insert(address);
}

void FreeSpans::remove(Spans::iterator span) {
  const auto same_size = by_size_.find(span->second);
  same_size->second.erase(span->first);
  if (same_size->second.empty()) by_size_.erase(same_size);
  spans_.erase(span);
}

void FreeSpans::insert(uint64_t address, int64_t size, uint64_t low, uint64_t high) {
  const auto next = spans_.find(address + static_cast<uint64_t>(size));
  if (next != spans_.end() && next->first < high) {
    size += next->second;
    remove(next);
  }
  auto before = spans_.lower_bound(address);
  if (before != spans_.begin()) {
    --before;
    if (before->first + static_cast<uint64_t>(before->second) == address && before->first >= low) {
      address = before->first;
      size += before->second;
      remove(before);
    }
  }
  add(address, size);
}

uint64_t FreeSpans::take_lowest(int64_t size) {
  uint64_t lowest = 0;
  for (auto fits = by_size_.lower_bound(size); fits != by_size_.end(); ++fits) {
    const uint64_t first = *fits->second.begin();
    if (lowest == 0 || first < lowest) lowest = first;
  }
  if (lowest == 0) return 0;
  const auto span = spans_.find(lowest);
  const int64_t rest = span->second - size;
  remove(span);
  if (rest > 0) add(lowest + static_cast<uint64_t>(size), rest);
  return lowest;
}

uint64_t FreeSpans::take_highest(int64_t size) {
  uint64_t highest = 0;
  for (auto fits = by_size_.lower_bound(size); fits != by_size_.end(); ++fits) {
    highest = std::max(highest, *fits->second.rbegin());
  }
  if (highest == 0) return 0;
  const auto span = spans_.find(highest);
  const int64_t rest = span->second - size;
  remove(span);
  if (rest > 0) add(highest, rest);
  return highest + static_cast<uint64_t>(rest);
}

int64_t FreeSpans::size_at(uint64_t address) const {
  const auto span = spans_.find(address);
  return span == spans_.end() ? 0 : span->second;
}

AddressSpace::AddressSpace(AddressPolicy policy, int64_t total_bytes, const AddressHints& hints, int64_t capacity_bytes)
    : policy_(policy),
      total_bytes_(total_bytes),
      capacity_bytes_(capacity_bytes),
      lowest_(kHighest),
      highest_(kRising),
      next_range_(kRangeBase) {
  uint64_t top = kTop;
  if (policy == AddressPolicy::chunks && hints.first_segment != 0) {
    first_segment_ = top = hints.first_segment;
    for (const auto& [address, size] : hints.holes) {
      // The context's own chunk is never empty: it counts as larger than all that can be freed in it.
      chunks_[address] = size + kSmallBuffer + 1;
      holes_.insert(address, size, address, address);
      top = std::min(top, address);
    }
  }
  if (top > kBottom) gaps_.insert(kBottom, static_cast<int64_t>(top - kBottom), kBottom, top);
}

bool AddressSpace::take(int64_t size) {
  if (size > capacity_bytes_ - held_bytes_) return false;
  held_bytes_ += size;
  return true;
}

uint64_t AddressSpace::allocate(int64_t size, StreamId) {
  if (size > kMaxSizeBytes || !take(size)) return 0;
  const uint64_t address = place(size);
  if (address == 0) held_bytes_ -= size;
  return address;
}

// 0: the address space is used up.
uint64_t AddressSpace::place(int64_t size) {
  const uint64_t bytes = static_cast<uint64_t>(size);
  switch (policy_) {
    case AddressPolicy::down: return lowest_ - kBottom < bytes ? 0 : lowest_ -= bytes;
    case AddressPolicy::up:
      if (kHighest - highest_ < bytes) return 0;
      return std::exchange(highest_, highest_ + bytes);
    case AddressPolicy::chunks: return place_in_chunk(size);
  }
  return 0;
}

uint64_t AddressSpace::place_in_chunk(int64_t size) {
  if (first_segment_ != 0) {
    const uint64_t first = std::exchange(first_segment_, 0);
    chunks_[first] = size + 1;  // never empty either
    return first;
  }
  if (const uint64_t hole = holes_.take_lowest(size)) return hole;
  const int64_t chunk = round_up(size, kChunk);
  const uint64_t base = gaps_.take_highest(chunk);
  if (base == 0) return 0;
  chunks_[base] = chunk;
  if (chunk > size) holes_.insert(base + static_cast<uint64_t>(size), chunk - size, base, base);
  return base;
}

void AddressSpace::release(uint64_t address, int64_t size) {
  held_bytes_ -= size;
  if (policy_ != AddressPolicy::chunks) return;
  const auto chunk = std::prev(chunks_.upper_bound(address));
  const auto [base, chunk_size] = *chunk;
  holes_.insert(address, size, base, base + static_cast<uint64_t>(chunk_size));
  if (holes_.size_at(base) != chunk_size) return;
  holes_.erase(base);
  gaps_.insert(base, chunk_size, 0, kHighest);
  chunks_.erase(chunk);
}

uint64_t AddressSpace::reserve(int64_t size, int64_t page) {
  const uint64_t address = next_range_;
  next_range_ += static_cast<uint64_t>(round_up(size, page)) + (uint64_t{4} << 20);
  return address;
}

}  // namespace oomscope
