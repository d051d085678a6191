// The packer's inner representation: allocations in order of their begin, and who overlaps whom in time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "replay/bounds.h"

namespace oomscope {

// Time is the rank in begin order: item i is live over [i, end_rank), so i < k overlap exactly if items[i].end_rank >
// k.
struct PackItem {
  int64_t size_bytes = 0;
  int64_t offset_bytes = 0;
  uint32_t end_rank = 0;
};

struct PackProblem {
  std::vector<PackItem> items;
  std::vector<uint32_t> input_of;  // items[i] is lifetimes[input_of[i]]
  int64_t floor_bytes = 0;         // most bytes live at once
  int64_t unit_bytes = 1;          // greatest common divisor of the sizes
};

// Drops lifetimes that are empty in time or size. Lifetimes must have passed check_lifetimes and floor_bytes.
PackProblem make_pack_problem(std::span<const Lifetime> lifetimes);

// The items for which keep[i] is set, with ranks closed up.
PackProblem sub_problem(const PackProblem& problem, const std::vector<bool>& keep);

// The most bytes live at once among the items for which keep[i] is set.
int64_t most_live_bytes(const PackProblem& problem, const std::vector<bool>& keep);

// Which placed items are live at the same time as a given one, in time proportional to their number.
// See Note [Two halves of an overlap] in packing_index.cc.
class OverlapIndex {
 public:
  explicit OverlapIndex(const PackProblem& problem);

  void clear();
  void insert(uint32_t item);
  void erase(uint32_t item);
  [[nodiscard]] bool contains(uint32_t item) const { return (present_[item >> 6] >> (item & 63) & 1) != 0; }

  // Replaces `overlapping` by the items in the index that are live together with `item`, in no particular order;
  // `item` itself must not be in it. Returns the work done.
  int64_t collect(uint32_t item, std::vector<uint32_t>* overlapping) const;

 private:
  struct Links {
    uint32_t next;
    uint32_t previous;
  };
  [[nodiscard]] size_t node_of(uint32_t item) const;
  int64_t collect_later(uint32_t item, std::vector<uint32_t>* overlapping) const;

  const std::vector<PackItem>& items_;
  uint32_t levels_ = 1;             // 2^levels_ >= number of items
  std::vector<uint32_t> head_;      // first item of a node's list
  std::vector<Links> links_;        // doubly linked lists, one a node
  std::vector<uint64_t> present_;   // bit i: item i is in the index
  std::vector<uint64_t> occupied_;  // bit w: present_[w] is not zero
};

}  // namespace oomscope
