// Pools that were gone when the snapshot was taken, found by trying.
//
// Before torch 2.12 an event does not name its pool, and a segment that was freed before the dump took the knowledge
// with it: a graph that was destroyed, a MemPool that went out of scope. The replay takes such memory for the default
// pool and soon meets a difference, since no allocation may cross pools. The segment that the difference names is then
// given to a pool of its own, together with those that were released in the same breath, and the replay is repeated.
#pragma once

#include <optional>
#include <vector>

#include "model/timeline.h"
#include "replay/exact_replay.h"

namespace oomscope {

class PoolGuess {
 public:
  explicit PoolGuess(const Timeline& timeline);

  // Blames a segment for the difference; true if there was one to blame that had not been blamed before.
  bool learn(const Difference& difference);
  [[nodiscard]] const std::vector<PoolSpan>& spans() const { return spans_; }

 private:
  struct Instance {
    uint64_t address;
    int64_t size;
    uint32_t begin;
    uint32_t end;     // the event that released it
    uint32_t breath;  // the first allocator call behind its release: released together, owned together
    bool is_private = false;
  };
  [[nodiscard]] Instance* find(uint64_t address, uint32_t event);

  const Timeline& timeline_;
  std::vector<Instance> instances_;
  std::vector<PoolSpan> spans_;
};

}  // namespace oomscope
