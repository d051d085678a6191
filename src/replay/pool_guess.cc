#include "replay/pool_guess.h"

#include <algorithm>
#include <array>
#include <map>

#include "replay/recorded_device.h"

namespace oomscope {
namespace {

// Marks pools that we named: no real counter gets there.
constexpr uint64_t kGuessedPool = uint64_t{1} << 40;
constexpr size_t kNothing = SIZE_MAX;

}  // namespace

PoolGuess::PoolGuess(const Timeline& timeline, int64_t large_page_bytes, const std::vector<bool>& empties)
    : timeline_(timeline), empties_(empties) {
  if (!timeline.trace().pool.empty()) return;  // torch 2.12 on: nothing to guess
  add_segments();
  add_ranges(large_page_bytes);
}

uint32_t PoolGuess::breath_behind(uint32_t release) const {
  const Trace& trace = timeline_.trace();
  while (release < trace.size_events() && is_driver_event(trace.action[release])) ++release;
  return release;
}

// All segments that were obtained, or there at the start: those that were released again name no pool.
void PoolGuess::add_segments() {
  const Trace& trace = timeline_.trace();
  std::map<uint64_t, Holding> open;
  uint32_t breath = 0;
  for (const uint32_t event : timeline_.driver_events) {
    Holding segment{.address = trace.addr[event], .size = trace.size[event], .begin = event};
    if (trace.action[event] == Action::segment_alloc) open[segment.address] = segment;
    if (trace.action[event] != Action::segment_free) continue;
    if (breath <= event) breath = breath_behind(event);
    const auto obtained = open.find(segment.address);
    segment.begin = obtained == open.end() ? 0 : obtained->second.begin;
    segment.end = event;
    segment.breath = breath;
    holdings_.push_back(segment);
    if (obtained != open.end()) open.erase(obtained);
  }
  for (const SnapshotSegment& segment : timeline_.snapshot->segments) {
    if (segment.device != timeline_.device || segment.is_expandable) continue;
    const auto obtained = open.find(segment.address);
    holdings_.push_back({.address = segment.address,
                         .size = segment.total_size,
                         .begin = obtained == open.end() ? 0 : obtained->second.begin,
                         .end = kNoEvent,
                         .breath = kNoEvent,
                         .stream = segment.stream,
                         .is_known = true,
                         .pool = segment.pool});
  }
}

void PoolGuess::add_ranges(int64_t large_page_bytes) {
  for (const RangeLife& life : range_lives(timeline_, large_page_bytes)) {
    holdings_.push_back({.address = life.address,
                         .size = life.size,
                         .begin = life.from,
                         .end = life.to,
                         .breath = life.to == kNoEvent ? kNoEvent : breath_behind(life.to),
                         .stream = life.stream,
                         .is_range = true,
                         .is_small = life.is_small,
                         .is_known = life.pool.has_value(),
                         .pool = life.pool.value_or(PoolId{})});
  }
}

size_t PoolGuess::find(uint64_t address, uint32_t event) const {
  const auto holds = [&](const Holding& holding) {
    return address - holding.address < static_cast<uint64_t>(holding.size) && holding.begin <= event &&
           event <= holding.end;
  };
  const auto found = std::find_if(holdings_.begin(), holdings_.end(), holds);
  return found == holdings_.end() ? kNothing : static_cast<size_t>(found - holdings_.begin());
}

bool PoolGuess::is_open(size_t holding) const { return holding != kNothing && !holdings_[holding].is_known; }

bool PoolGuess::calls_empty_cache(const Holding& holding) const {
  const Trace& trace = timeline_.trace();
  for (uint32_t i = holding.end; i < holding.breath && !empties_.empty(); ++i) {
    if (empties_[static_cast<size_t>(trace.stack[i])]) return true;
  }
  return false;
}

// The pools that could have had this memory too, the one that had other memory at the nearest time first. A pool has
// one expandable range for each stream and size at a time.
std::vector<PoolId> PoolGuess::other_pools_for(const Holding& holding) const {
  std::map<PoolId, uint32_t> distances;
  for (const Holding& other : holdings_) {
    if (other.pool.is_default()) continue;
    const uint32_t distance = std::max(other.begin, holding.begin) - std::min(other.begin, holding.begin);
    const auto [entry, made] = distances.try_emplace(other.pool, distance);
    if (!made) entry->second = std::min(entry->second, distance);
  }
  for (const Holding& other : holdings_) {
    const bool is_there = other.begin <= holding.end && holding.begin <= other.end;
    const bool are_ranges = other.is_range && holding.is_range;
    if (are_ranges && is_there && other.stream == holding.stream && other.is_small == holding.is_small) {
      distances.erase(other.pool);
    }
  }
  std::vector<PoolId> pools;
  for (const auto& [pool, distance] : distances) pools.push_back(pool);
  std::sort(pools.begin(), pools.end(), [&](PoolId a, PoolId b) { return distances[a] < distances[b]; });
  return pools;
}

// What was released in one breath was of one pool, but for a program's empty_cache, which releases the default pool's
// memory in the same breath; and ranges go to a pool one by one.
std::vector<size_t> PoolGuess::released_with(size_t holding) const {
  const Holding& blamed = holdings_[holding];
  std::vector<size_t> together = {holding};
  if (calls_empty_cache(blamed)) return together;
  for (size_t i = 0; i < holdings_.size(); ++i) {
    if (i != holding && is_open(i) && holdings_[i].breath == blamed.breath) together.push_back(i);
  }
  return together;
}

std::vector<PoolGuess::Way> PoolGuess::ways_to_explain(const Difference& difference) const {
  constexpr size_t kMostPools = 4;
  const Trace& trace = timeline_.trace();
  std::vector<Way> ways;
  if (difference.event >= trace.size_events()) return ways;
  // Where the recording went, and where the engine went although the recording did not.
  std::vector<size_t> blamed;
  for (const uint64_t address : {trace.addr[difference.event], difference.engine_address}) {
    const size_t found = find(address, difference.event);
    if (!is_open(found)) continue;
    blamed.push_back(found);
  }
  for (const size_t i : blamed) {
    const bool is_range = holdings_[i].is_range;
    const Way own{.holdings = released_with(i), .pool = {0, kGuessedPool + holdings_[i].breath}};
    if (!is_range) ways.push_back(own);
    std::vector<PoolId> pools = other_pools_for(holdings_[i]);
    std::erase(pools, own.pool);
    if (pools.size() > kMostPools) pools.resize(kMostPools);
    for (const PoolId pool : pools) {
      ways.push_back({.holdings = is_range ? std::vector<size_t>{i} : own.holdings, .pool = pool});
    }
    if (is_range) ways.push_back({.holdings = {i}, .pool = own.pool});
    if (is_range && own.holdings.size() > 1) ways.push_back(own);
  }
  return ways;
}

void PoolGuess::take(const Way& way) {
  for (const size_t i : way.holdings) {
    Holding& holding = holdings_[i];
    holding.is_known = true;
    holding.pool = way.pool;
    taken_.emplace_back(i, way.pool);
    spans_.push_back(
        {.address = holding.address,
         .size = holding.size,
         .begin = holding.begin,
         .end = std::max(holding.end, uint32_t{1}),  // released at once: it was there before the first event
         .pool = way.pool});
  }
}

std::vector<std::pair<size_t, PoolId>> PoolGuess::assignment() const {
  std::vector<std::pair<size_t, PoolId>> sorted = taken_;
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace oomscope
