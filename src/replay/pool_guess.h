// Pools that nothing names any more, found by trying.
//
// Before torch 2.12 an event does not name its pool, and a segment that was freed before the dump took the knowledge
// with it: a graph that was destroyed, a MemPool that went out of scope. The replay takes such memory for the default
// pool and soon meets a difference, since no allocation may cross pools. The memory that the difference names is then
// given to another pool, one that the recording names or one of its own, together with what was released in the same
// breath, and the replay is repeated.
#pragma once

#include <utility>
#include <vector>

#include "model/expandable_ranges.h"
#include "model/timeline.h"
#include "replay/exact_replay.h"

namespace oomscope {

class PoolGuess {
 public:
  // `empties`: by stack, does it call empty_cache? See stacks_that_call. Both must outlive the guess.
  PoolGuess(const Timeline& timeline, int64_t large_page_bytes, const std::vector<bool>& empties);

  // Memory that may have been of a pool.
  struct Way {
    std::vector<size_t> holdings;
    PoolId pool;
  };
  // Ways to explain the difference, the likeliest first; none if it names no memory that could be another pool's.
  [[nodiscard]] std::vector<Way> ways_to_explain(const Difference& difference) const;
  void take(const Way& way);
  // What to replay with.
  [[nodiscard]] const std::vector<PoolSpan>& spans() const { return spans_; }
  // What was taken, whatever the order.
  [[nodiscard]] std::vector<std::pair<size_t, PoolId>> assignment() const;

 private:
  // Memory that is of one pool from `begin` to `end`: a segment, or what was mapped of an expandable range.
  struct Holding {
    uint64_t address = 0;
    int64_t size = 0;
    uint32_t begin = 0;
    uint32_t end = 0;     // the event that released it
    uint32_t breath = 0;  // the first allocator call behind its release: released together, owned together
    StreamId stream{};
    bool is_range = false;
    bool is_small = false;  // of ranges
    bool is_known = false;
    PoolId pool = {};
  };
  void add_segments();
  void add_ranges(int64_t large_page_bytes);
  [[nodiscard]] uint32_t breath_behind(uint32_t release) const;
  [[nodiscard]] size_t find(uint64_t address, uint32_t event) const;
  [[nodiscard]] bool is_open(size_t holding) const;
  [[nodiscard]] bool calls_empty_cache(const Holding& holding) const;
  [[nodiscard]] std::vector<PoolId> other_pools_for(const Holding& holding) const;
  [[nodiscard]] std::vector<size_t> released_with(size_t holding) const;

  const Timeline& timeline_;
  const std::vector<bool>& empties_;
  std::vector<Holding> holdings_;
  std::vector<PoolSpan> spans_;
  std::vector<std::pair<size_t, PoolId>> taken_;
};

}  // namespace oomscope
