// Note [Two halves of an overlap]
// The packer asks one question millions of times: which placed items are live together with item i? Written in ranks,
// those are (1) the placed items among ranks i+1 .. end_rank(i)-1, which begin while i is live, and (2) the placed
// items of a lower rank whose end_rank lies beyond i, which are live when i begins.
//
// Half (1) is a range of a bitmap with a summary bit for each word, so that a long, sparsely filled range costs little.
// Half (2) is a stabbing query. Each item is kept at one node of an implicit binary tree over the ranks: the lowest
// node whose span holds the whole item, which two shifts find. All items of a node contain the middle of its span, so a
// query walks from the leaf of i to the root and looks at each item on the way. An item that lies at a leaf is live
// only for its own rank and can never be found by half (2), so leaves have no lists.
//
//   rank      0   1   2   3   4   5   6   7      items: a = [0,7), b = [1,3), c = [2,4), d = [5,6)
//   root      a (0..7)                            asking for d: leaf 5, node 4..5 empty, node 4..7 empty,
//   level 2   b (0..3)                            root: a, end_rank 7 > 5: overlaps. b and c are never looked at.
//   level 1                   c (2..3)
//
// Cost: one list operation for insert and erase; collect looks at log n nodes, the overlapping items, and those items
// on the path that do not overlap after all (about as many again in recordings).
#include "replay/packing_index.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace oomscope {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr size_t kNoNode = 0;

// Indexes of the lifetimes that need a place, by begin; equal begins stay in input order.
std::vector<uint32_t> order_by_begin(std::span<const Lifetime> lifetimes) {
  std::vector<uint32_t> order;
  order.reserve(lifetimes.size());
  bool sorted = true;
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    if (lifetimes[i].size_bytes == 0 || lifetimes[i].begin == lifetimes[i].end) continue;
    sorted = sorted && (order.empty() || lifetimes[order.back()].begin <= lifetimes[i].begin);
    order.push_back(static_cast<uint32_t>(i));
  }
  if (sorted) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return lifetimes[a].begin < lifetimes[b].begin; });
  return order;
}

}  // namespace

PackProblem make_pack_problem(std::span<const Lifetime> lifetimes) {
  PackProblem problem;
  problem.input_of = order_by_begin(lifetimes);
  size_t count = problem.input_of.size();
  std::vector<uint32_t> begins(count);
  for (size_t i = 0; i < count; ++i) begins[i] = lifetimes[problem.input_of[i]].begin;
  problem.items.resize(count);
  int64_t divisor = 0;
  for (size_t i = 0; i < count; ++i) {
    const Lifetime& lifetime = lifetimes[problem.input_of[i]];
    // Most ends lie close behind their begin: gallop, then bisect.
    size_t low = i;
    size_t step = 1;
    while (low + step < count && begins[low + step] < lifetime.end) {
      low += step;
      step *= 2;
    }
    auto last = begins.begin() + static_cast<ptrdiff_t>(std::min(low + step, count));
    auto end = std::lower_bound(begins.begin() + static_cast<ptrdiff_t>(low), last, lifetime.end);
    problem.items[i] = {lifetime.size_bytes, 0, static_cast<uint32_t>(end - begins.begin())};
    divisor = std::gcd(divisor, lifetime.size_bytes);
  }
  if (divisor > 0) problem.unit_bytes = divisor;
  problem.floor_bytes = most_live_bytes(problem, std::vector<bool>(count, true));
  return problem;
}

int64_t most_live_bytes(const PackProblem& problem, const std::vector<bool>& keep) {
  std::vector<int64_t> ending_bytes(problem.items.size() + 1, 0);  // by end_rank
  int64_t live_bytes = 0;
  int64_t most_bytes = 0;
  for (size_t i = 0; i < problem.items.size(); ++i) {
    live_bytes -= ending_bytes[i];
    if (!keep[i]) continue;
    live_bytes += problem.items[i].size_bytes;
    ending_bytes[problem.items[i].end_rank] += problem.items[i].size_bytes;
    most_bytes = std::max(most_bytes, live_bytes);
  }
  return most_bytes;
}

PackProblem sub_problem(const PackProblem& problem, const std::vector<bool>& keep) {
  std::vector<uint32_t> new_rank(problem.items.size() + 1, 0);
  for (size_t i = 0; i < problem.items.size(); ++i) new_rank[i + 1] = new_rank[i] + (keep[i] ? 1 : 0);
  PackProblem result;
  result.unit_bytes = problem.unit_bytes;
  for (size_t i = 0; i < problem.items.size(); ++i) {
    if (!keep[i]) continue;
    result.items.push_back(problem.items[i]);
    result.items.back().end_rank = new_rank[problem.items[i].end_rank];
    result.input_of.push_back(problem.input_of[i]);
  }
  result.floor_bytes = most_live_bytes(result, std::vector<bool>(result.items.size(), true));
  return result;
}

OverlapIndex::OverlapIndex(const PackProblem& problem) : items_(problem.items) {
  while ((size_t{1} << levels_) < items_.size()) ++levels_;
  head_.assign(size_t{1} << levels_, kNone);
  links_.assign(items_.size(), {kNone, kNone});
  present_.assign(items_.size() / 64 + 1, 0);
  occupied_.assign(present_.size() / 64 + 1, 0);
}

void OverlapIndex::clear() {
  std::fill(head_.begin(), head_.end(), kNone);
  std::fill(present_.begin(), present_.end(), 0);
  std::fill(occupied_.begin(), occupied_.end(), 0);
}

// Nodes are numbered as in a heap: the root is 1, the node of height k over rank r is 2^(levels_ - k) + (r >> k).
size_t OverlapIndex::node_of(uint32_t item) const {
  uint32_t last = items_[item].end_rank - 1;
  if (item == last) return kNoNode;
  uint32_t height = static_cast<uint32_t>(std::bit_width(item ^ last));
  return (size_t{1} << (levels_ - height)) + (item >> height);
}

void OverlapIndex::insert(uint32_t item) {
  present_[item >> 6] |= uint64_t{1} << (item & 63);
  occupied_[item >> 12] |= uint64_t{1} << (item >> 6 & 63);
  size_t node = node_of(item);
  if (node == kNoNode) return;
  links_[item] = {head_[node], kNone};
  if (head_[node] != kNone) links_[head_[node]].previous = item;
  head_[node] = item;
}

void OverlapIndex::erase(uint32_t item) {
  present_[item >> 6] &= ~(uint64_t{1} << (item & 63));
  if (present_[item >> 6] == 0) occupied_[item >> 12] &= ~(uint64_t{1} << (item >> 6 & 63));
  size_t node = node_of(item);
  if (node == kNoNode) return;
  Links links = links_[item];
  if (links.previous == kNone) {
    head_[node] = links.next;
  } else {
    links_[links.previous].next = links.next;
  }
  if (links.next != kNone) links_[links.next].previous = links.previous;
}

int64_t OverlapIndex::collect(uint32_t item, std::vector<uint32_t>* overlapping) const {
  overlapping->clear();
  int64_t work = 1;
  for (size_t node = ((size_t{1} << levels_) + item) >> 1; node != 0; node >>= 1) {
    for (uint32_t other = head_[node]; other != kNone; other = links_[other].next) {
      ++work;
      if (other < item && items_[other].end_rank > item) overlapping->push_back(other);
    }
  }
  return work + collect_later(item, overlapping);
}

int64_t OverlapIndex::collect_later(uint32_t item, std::vector<uint32_t>* overlapping) const {
  uint32_t first = item + 1;
  uint32_t end = items_[item].end_rank;
  if (first >= end) return 0;
  int64_t work = 0;
  uint32_t last_word = (end - 1) >> 6;
  for (uint32_t group = first >> 12; group <= last_word >> 6; ++group) {
    uint64_t words = occupied_[group];
    ++work;
    if (group == first >> 12) words &= ~uint64_t{0} << (first >> 6 & 63);
    for (; words != 0; words &= words - 1) {
      uint32_t word = (group << 6) + static_cast<uint32_t>(std::countr_zero(words));
      if (word > last_word) break;
      uint64_t bits = present_[word];
      if (word == first >> 6) bits &= ~uint64_t{0} << (first & 63);
      if (word == last_word && (end & 63) != 0) bits &= (uint64_t{1} << (end & 63)) - 1;
      for (; bits != 0; bits &= bits - 1) {
        ++work;
        overlapping->push_back((word << 6) + static_cast<uint32_t>(std::countr_zero(bits)));
      }
    }
  }
  return work;
}

}  // namespace oomscope
