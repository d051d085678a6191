// Packing: dynamic storage allocation with full knowledge.
//
// The problem: lifetimes are rectangles, as wide as they live and as high as they are large, which may move up and down
// but not sideways. Stack them without overlap as low as possible. It is NP-complete. Real training runs are kind:
// the floor is nearly always reached within a percent, but by no single simple rule.
//
// What we do, each step only while work is left and the floor is not (nearly) reached:
//   1. Best fit in time order (packing_start.cc). Nearly linear, costs no work units, and reaches the floor on many
//      steady recordings.
//   2. Parameters and optimizer states live for most of the recording. They are neighbours of everything, half to nine
//      tenths of all pairs, and have little freedom worth having. If the others have a floor that adds up to the floor
//      of all, we also search with them pinned: stacked at the bottom and taken out (see Note [Pinning is free]). Both
//      searches run; the one that starts lower gets two thirds of the work.
//   3. Greedy by size, by duration, by area, where the number of pairs allows.
//   4. Ejection search (packing_repair.cc) from the best of these: first for the floor itself, then, failing that,
//      halving the distance between the highest target not reached and the best; then again with more work, other
//      ties, other weights and, every other time, from the second best.
//
//       best so far ----+------------------------------ height
//                       |        3. reached: new best
//                  2. failed
//       floor ----- 1. failed -------------------------
//
// Note [Pinning is free]
// Let P be the pinned items with sum B, R the rest with floor F_R. Any packing of R of height h gives one of all of
// height B + h. We pin only where B + F_R equals the floor of all, so a rest packed to its own floor is an optimal
// packing of all. What can be lost is freedom: a height between may become unreachable. So the search without
// pinning runs too, and small problems are never pinned.
//
// Worked example: A 2 units in [0,2), B 1 in [0,4), C 3 in [2,4). The floor is 4. Nothing is pinned (the problem is
// small). Time order gives 6, by size gives 4, which is the floor: done. packing_start.cc draws both.
//
// Cost: step 1 is n log n. Steps 3 and 4 obey options.work_units and exceed it by one pass over the items at most.
// Memory is about 150 bytes a lifetime.
//
// Left out: exact search (branch and bound over canonical placements, as MiniMalloc does) would close the last percents
// of a few hundred tightly packed items, which is what on-chip memories need; docs/packing.md tells how far we stay
// off there. Bundling small items into boxes (as idealloc and the approximation proofs do) would save pairs where
// hundreds of thousands of unlike allocations meet; there only steps 1 and a little of 4 are affordable.
#include "replay/packing.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "replay/packing_index.h"
#include "replay/packing_repair.h"
#include "replay/packing_start.h"

namespace oomscope {
namespace {

constexpr size_t kPinningMinItems = 1024;
constexpr int64_t kFirstSlices = 6;     // the first repair attempts get this part of the work
constexpr int64_t kGoodEnough = 16384;  // the search ends within floor / kGoodEnough of the floor: 64 KiB for each GiB
constexpr int64_t kNear = 4096;         // and a round of it when the distance to bisect is floor / kNear

struct Candidate {
  int64_t height_bytes = -1;  // -1: none
  std::vector<int64_t> offsets_bytes;
  std::string method;
};

std::vector<int64_t> offsets_of(const PackProblem& problem) {
  std::vector<int64_t> offsets_bytes(problem.items.size());
  for (size_t i = 0; i < offsets_bytes.size(); ++i) offsets_bytes[i] = problem.items[i].offset_bytes;
  return offsets_bytes;
}

int64_t height_of(const PackProblem& problem) {
  int64_t height_bytes = 0;
  for (const PackItem& item : problem.items) height_bytes = std::max(height_bytes, item.offset_bytes + item.size_bytes);
  return height_bytes;
}

// Steps 2 to 4 of the essay on one problem.
class Search {
 public:
  explicit Search(PackProblem* problem) : problem_(problem) {}

  // Step 2: costs no work units.
  void begin() { keep(place_in_time_order(problem_), "best fit in time order"); }

  // Steps 3 and 4.
  void improve(int64_t work_units) {
    work_units_ = work_units;
    if (done() || problem_->items.empty()) return;
    OverlapIndex index(*problem_);
    try_greedy(GreedyOrder::size, "greedy by size", 2, &index);
    try_greedy(GreedyOrder::duration, "greedy by duration", 16, &index);
    try_greedy(GreedyOrder::area, "greedy by area", 16, &index);
    if (best_.height_bytes >= 0) repair(&index);
  }

  [[nodiscard]] const Candidate& best() const { return best_; }
  [[nodiscard]] int64_t work_units() const { return work_units_; }  // left
  [[nodiscard]] bool done() const {
    return best_.height_bytes >= 0 && best_.height_bytes - problem_->floor_bytes <= problem_->floor_bytes / kGoodEnough;
  }

 private:
  void keep(int64_t height_bytes, const std::string& method) {
    if (height_bytes < 0) return;
    Candidate candidate{height_bytes, offsets_of(*problem_), method};
    if (best_.height_bytes < 0 || height_bytes < best_.height_bytes) std::swap(candidate, best_);
    if (candidate.height_bytes < 0) return;
    if (second_.height_bytes < 0 || candidate.height_bytes < second_.height_bytes) second_ = std::move(candidate);
  }

  // Only where it takes no more than one part in `parts` of the work.
  void try_greedy(GreedyOrder order, const char* method, int64_t parts, OverlapIndex* index) {
    if (done() || greedy_work_estimate(*problem_) > work_units_ / parts) return;
    keep(place_greedily(problem_, order, index, &work_units_), method);
  }

  // Between two multiples of the unit, rounded down: heights elsewhere are not needed.
  [[nodiscard]] int64_t between(int64_t low_bytes, int64_t high_bytes) const {
    return low_bytes + (high_bytes - low_bytes) / 2 / problem_->unit_bytes * problem_->unit_bytes;
  }

  void repair(OverlapIndex* index) {
    int64_t slice = std::max(work_units_ / kFirstSlices, int64_t{1});
    const int64_t near_bytes = std::max(problem_->floor_bytes / kNear, problem_->unit_bytes);
    for (uint64_t round = 0; work_units_ > 0 && !done(); ++round) {
      int64_t failed_bytes = problem_->floor_bytes;  // the highest target not reached in this round
      int64_t target_bytes = round % 2 == 0 ? problem_->floor_bytes : between(failed_bytes, best_.height_bytes);
      while (work_units_ > 0 && !done()) {
        bool from_second = round % 2 == 1 && second_.height_bytes >= 0;
        bool reached = repair_once(index, from_second ? second_ : best_,
                                   {target_bytes, std::min(slice, work_units_), round + 1, round % 3 == 2});
        if (!reached) failed_bytes = target_bytes;
        if (best_.height_bytes - failed_bytes <= near_bytes) break;
        target_bytes = between(failed_bytes, best_.height_bytes);
      }
      slice *= 2;
    }
  }

  bool repair_once(OverlapIndex* index, const Candidate& from, const RepairOptions& options) {
    for (size_t i = 0; i < problem_->items.size(); ++i) problem_->items[i].offset_bytes = from.offsets_bytes[i];
    std::string method = from.method;
    RepairResult result = repair_placement(problem_, index, options);
    work_units_ -= std::max(result.work_units, int64_t{1});
    if (!result.reached) return false;
    constexpr const char* kRepaired = ", then ejection";
    if (method.find(kRepaired) == std::string::npos) method += kRepaired;
    keep(height_of(*problem_), method);
    return true;
  }

  PackProblem* problem_;
  int64_t work_units_ = 0;
  Candidate best_;
  Candidate second_;
};

// Which items to search for; the others are pinned. See Note [Pinning is free].
std::vector<bool> choose_unpinned(const PackProblem& problem) {
  size_t count = problem.items.size();
  std::vector<bool> unpinned(count, true);
  if (count < kPinningMinItems) return unpinned;
  for (double part : {0.5, 0.75, 0.9, 0.98}) {
    int64_t pinned_bytes = 0;
    int64_t limit = static_cast<int64_t>(part * static_cast<double>(count));
    for (size_t i = 0; i < count; ++i) {
      bool pinned = static_cast<int64_t>(problem.items[i].end_rank) - static_cast<int64_t>(i) > limit;
      unpinned[i] = !pinned;
      if (pinned) pinned_bytes += problem.items[i].size_bytes;
    }
    if (pinned_bytes + most_live_bytes(problem, unpinned) == problem.floor_bytes) return unpinned;
  }
  return std::vector<bool>(count, true);
}

// found places the items of rest = those of problem that are unpinned; the pinned ones are stacked below it.
Packing assemble(const PackProblem& problem, const std::vector<bool>& unpinned, const PackProblem& rest,
                 const Candidate& found, size_t count) {
  Packing packing;
  packing.offsets_bytes.assign(count, 0);
  packing.floor_bytes = problem.floor_bytes;
  int64_t pinned_bytes = 0;
  for (size_t i = 0; i < problem.items.size(); ++i) {
    if (unpinned[i]) continue;
    packing.offsets_bytes[problem.input_of[i]] = pinned_bytes;
    pinned_bytes += problem.items[i].size_bytes;
  }
  for (size_t i = 0; i < rest.items.size(); ++i) {
    packing.offsets_bytes[rest.input_of[i]] = pinned_bytes + found.offsets_bytes[i];
  }
  packing.height_bytes = pinned_bytes + found.height_bytes;
  packing.method = found.method;
  return packing;
}

bool is_higher(const Candidate& a, int64_t a_base_bytes, const Candidate& b) {
  if (a.height_bytes < 0 || b.height_bytes < 0) return a.height_bytes < 0;
  return a_base_bytes + a.height_bytes > b.height_bytes;
}

// Both with and without pinning; the one that starts lower gets most of the work.
Candidate search_both(Search* whole, Search* pinned, int64_t pinned_bytes, int64_t work_units, bool* pinned_is_best) {
  pinned->begin();
  bool whole_first = is_higher(pinned->best(), pinned_bytes, whole->best());
  Search* first = whole_first ? whole : pinned;
  Search* second = whole_first ? pinned : whole;
  first->improve(work_units / 3 * 2);
  if (!first->done()) second->improve(work_units - work_units / 3 * 2 + std::max(first->work_units(), int64_t{0}));
  *pinned_is_best = !is_higher(pinned->best(), pinned_bytes, whole->best());
  return *pinned_is_best ? pinned->best() : whole->best();
}

}  // namespace

Result<Packing> pack_lifetimes(std::span<const Lifetime> lifetimes, const PackingOptions& options) {
  OOM_TRY(Floor floor, floor_bytes(lifetimes));
  Error too_large{"packing-too-large",
                  "error.packing.too-large",
                  "error.packing.too-large.where",
                  "error.live-bytes-overflow.hint",
                  {{"bytes", std::to_string(floor.bytes)}, {"event", std::to_string(floor.at)}}};
  if (floor.bytes > kMaxPackingBytes || lifetimes.size() >= UINT32_MAX) return too_large;
  PackProblem problem = make_pack_problem(lifetimes);
  std::vector<bool> all(problem.items.size(), true);
  Search whole(&problem);
  whole.begin();
  std::vector<bool> unpinned = whole.done() ? all : choose_unpinned(problem);
  if (unpinned == all) {
    whole.improve(options.work_units);
    if (whole.best().height_bytes < 0) return too_large;
    return assemble(problem, all, problem, whole.best(), lifetimes.size());
  }
  PackProblem rest = sub_problem(problem, unpinned);
  Search pinned(&rest);
  bool pinned_is_best = false;
  int64_t pinned_bytes = problem.floor_bytes - rest.floor_bytes;
  Candidate found = search_both(&whole, &pinned, pinned_bytes, options.work_units, &pinned_is_best);
  if (found.height_bytes < 0) return too_large;
  if (pinned_is_best) return assemble(problem, unpinned, rest, found, lifetimes.size());
  return assemble(problem, all, problem, found, lifetimes.size());
}

}  // namespace oomscope
