// AddressSpace: a driver for what-if replays, that invents addresses as a real one does.
//
// Up to torch 2.11 the lowest address wins between free blocks of one size, so where the driver puts segments can
// decide a placement later. Nobody can know those addresses for a run that did not happen. What was observed
// (CUDA 13.0, one H200; 94.8 % of all pairs of segments alive together come in the right order):
//
//   cudaMalloc carves from chunks of whole 32 MiB. A new chunk goes into the highest gap of the address space that
//   holds it, so chunks go downwards, and the allocation sits at the start of its chunk. Before a new chunk is made,
//   the lowest hole of an existing chunk that fits is used. An emptied chunk is given back at once.
//
//      low  [ chunk 3: |a2|..hole..| ]  [ chunk 2: |####a1####| ]  [ chunk 1: |a0|.hole.| ]  high
//
// A process begins with one or two holes below its first segment, which the context left; their size differs from
// process to process, but a recording that starts at the beginning shows them (AddressHints).
//
// On another driver expect something else: results that hang on it are reported as a range over the policies.
// Expandable segments do not depend on it at all, nor does anything from torch 2.13 on.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "caching/device.h"

namespace oomscope {

enum class AddressPolicy : uint8_t {
  chunks,  // as observed, see above
  down,    // every segment below all earlier ones
  up,      // every segment above all earlier ones
};

// What a recording shows of the address space that its process began with.
struct AddressHints {
  uint64_t first_segment = 0;                       // 0: unknown
  std::vector<std::pair<uint64_t, int64_t>> holes;  // address, size; ascending, below first_segment
};

// Spans of free addresses, found by size. Sizes come in multiples of 2 MiB, so that few are distinct.
class FreeSpans {
 public:
  // Joined to the free spans that it touches, as far as they lie in [low, high).
  void insert(uint64_t address, int64_t size, uint64_t low, uint64_t high);
  // Takes `size` bytes from the front of the lowest span that has them; 0: none has.
  uint64_t take_lowest(int64_t size);
  // ... from the end of the highest span that has them.
  uint64_t take_highest(int64_t size);
  [[nodiscard]] int64_t size_at(uint64_t address) const;          // 0: no span begins there
  void erase(uint64_t address) { remove(spans_.find(address)); }  // of a span

 private:
  using Spans = std::map<uint64_t, int64_t>;
  void add(uint64_t address, int64_t size);
  void remove(Spans::iterator span);

  Spans spans_;  // address -> size
  std::map<int64_t, std::set<uint64_t>> by_size_;
};

class AddressSpace final : public Device {
 public:
  // `total_bytes` is what cudaMemGetInfo says; `capacity_bytes` what this process can get of it.
  AddressSpace(AddressPolicy policy, int64_t total_bytes, const AddressHints& hints = {},
               int64_t capacity_bytes = std::numeric_limits<int64_t>::max());

  uint64_t allocate(int64_t size, StreamId) override;
  void release(uint64_t address, int64_t size) override;
  uint64_t reserve(int64_t size, int64_t page) override;
  void release_range(uint64_t, int64_t) override {}
  bool map(uint64_t, int64_t size, int64_t) override { return take(size); }
  void unmap(uint64_t, int64_t size) override { held_bytes_ -= size; }
  [[nodiscard]] int64_t total_bytes() const override { return total_bytes_; }

 private:
  // False: the card has no room for so much.
  bool take(int64_t size);
  uint64_t place(int64_t size);
  uint64_t place_in_chunk(int64_t size);

  AddressPolicy policy_;
  int64_t total_bytes_;
  int64_t capacity_bytes_;
  int64_t held_bytes_ = 0;
  std::map<uint64_t, int64_t> chunks_;  // base -> size
  FreeSpans holes_;                     // inside chunks
  FreeSpans gaps_;                      // between chunks
  uint64_t first_segment_ = 0;          // where the first segment goes, if the recording shows it
  uint64_t lowest_;
  uint64_t highest_;
  uint64_t next_range_;
};

}  // namespace oomscope
