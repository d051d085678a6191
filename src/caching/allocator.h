// CachingAllocator: PyTorch's CUDA caching allocator for one device, exactly, by version, over a Device.
//
// The same code replays recordings, answers what-if questions, plans jobs and serves as the live drop-in. It reads
// no clock, environment, file or random source: same calls and same Device answers, same addresses out.
//
// Source: c10/cuda/CUDACachingAllocator.cpp (DeviceCachingAllocator), torch 2.1 to 2.13; the differences are in
// RuleSet. Member functions carry PyTorch's own names, to be read beside it.
//
// One malloc, in PyTorch's order (allocator.cc, then reclaim.cc and expandable.cc):
//
//   poll events -> round -> pool -> search the free set
//     -> garbage collection, if on                                    | each of these only
//     -> driver -> pools that opted in -> release_available + driver  | if the step before
//     -> release everything + driver (a retry)                        | found nothing
//     -> OOM
//   -> carve: split or hand out whole
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "caching/block.h"
#include "caching/device.h"
#include "caching/pool.h"
#include "caching/rules.h"
#include "caching/sizes.h"
#include "caching/stats.h"
#include "types/allocator_settings.h"
#include "types/ids.h"

namespace oomscope {

// Why the last malloc returned nullptr, or the last empty_cache released nothing.
enum class Refusal {
  none,
  zero,       // a request of 0 bytes: not an error, PyTorch returns a null pointer
  too_large,  // 2^60 bytes or more
  oom,
  preempted,   // throw_on_cudamalloc_oom
  impossible,  // this rule set would trip one of PyTorch's own assertions here
};

// A free run or an owned block, for putting an allocator into the state a recording starts with.
struct AdoptedBlock {
  int64_t size = 0;
  int64_t requested_size = 0;
  bool allocated = false;
  bool pending = false;
  bool mapped = true;  // false: a hole in an expandable range
};

class CachingAllocator {
 public:
  CachingAllocator(const RuleSet& rules, const AllocatorSettings& settings, Device& device);
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // --- what PyTorch's tensors do ---------------------------------------------------------------------------------

  // `requested` bytes for `stream` in the pool that the open scopes decide. nullptr: see refusal().
  Block* malloc(int64_t requested, StreamId stream);
  // The same in a given pool, as a recording tells it. A private pool stands for an open scope of that pool.
  Block* malloc_in_pool(int64_t requested, StreamId stream, PoolId pool);
  // The same at an address that the caller knows to be free: a checkpoint of a graph pool that is restored, or a
  // malloc with a forced address (2.13 on). No driver call; nullptr if the address is not inside one free block.
  Block* malloc_at(uint64_t address, int64_t requested, StreamId stream, PoolId pool);
  // A block of a pool's checkpoint, as CUDA graph trees restore it: `size` bytes, not rounded, at the start of a free
  // block of the pool, small or large. nullptr if there is none. `before`: the block restored just before, if it is
  // live.
  Block* restore(uint64_t address, int64_t size, StreamId stream, PoolId pool, Block* before = nullptr);
  // The user is done. Returned at once, unless other streams used it: then when their events are. `current` is the
  // stream of the thread that calls: from torch 2.13 on its capture defers the events. Without it, the block's own.
  void free(Block* block, std::optional<StreamId> current = std::nullopt);
  // As free() for a block whose users are unknown: stays pending until complete() or a full release.
  void free_held(Block* block);
  void complete(Block* block);
  // A use inside a capture, or inside any open scope up to torch 2.12, is over with it: see queue_deferred.
  void record_stream(Block* block, StreamId stream, std::optional<StreamId> current = std::nullopt);
  // `current` is the stream of the thread that calls: from torch 2.13 on only its capture holds the default pool back;
  // without it, any capture does. Releases nothing, with refusal() impossible, where the rule set has an assertion.
  void empty_cache(std::optional<StreamId> current = std::nullopt);

  // --- pools, scopes, captures ---------------------------------------------------------------------------------

  // Routes allocations to `pool` until end_allocate_to_pool: those on `stream`, or all if none is given.
  // False if a scope of that pool is open already.
  bool begin_allocate_to_pool(PoolId pool, std::optional<StreamId> stream, bool capturing);
  void end_allocate_to_pool(PoolId pool);
  void release_pool(PoolId pool);          // drops one reference; at 0 its segments may be freed
  void empty_pool(PoolId pool);            // MemPool's destructor: frees what is free of that pool alone
  PrivatePool& private_pool(PoolId pool);  // created on first use

  // --- limits ----------------------------------------------------------------------------------------------------

  // set_per_process_memory_fraction: `limit_bytes` is fraction * total. A limit of the whole card is no limit from
  // torch 2.10 on; before it still switches garbage collection on.
  void set_memory_limit(std::optional<int64_t> limit_bytes) { limit_bytes_ = limit_bytes; }
  // From now on; what is there stays as it is.
  void set_settings(const AllocatorSettings& settings);

  // --- looking -----------------------------------------------------------------------------------------------------

  [[nodiscard]] const Stats& stats() const { return stats_; }
  [[nodiscard]] Refusal refusal() const { return refusal_; }
  [[nodiscard]] int64_t reserved_bytes() const { return total_reserved_; }
  [[nodiscard]] const AllocatorSettings& settings() const { return settings_; }
  [[nodiscard]] const RuleSet& rules() const { return rules_; }
  [[nodiscard]] std::span<Segment* const> segments() const { return segments_; }
  // The free block that a request would get now, or nullptr. Moves no block; may make the pool that it names.
  [[nodiscard]] Block* peek(int64_t requested, StreamId stream, PoolId pool);
  // May a free block of `block_size` serve a rounded request of `size`, as max_split_size and its bounds decide?
  [[nodiscard]] bool accepts(int64_t size, int64_t block_size) const;
  // Would a search that fails now start a garbage collection that frees something?
  [[nodiscard]] bool gc_would_run() const;
  // Would a release of everything give memory of the default pool back, without waiting for anything?
  [[nodiscard]] bool has_releasable_memory() const;
  // Choices so far between equally good blocks of different segments, which only the driver's addresses decided.
  // Without any, the result is the same on every driver.
  [[nodiscard]] int64_t address_ties() const { return address_ties_; }
  // The smallest total of reserved bytes and request that the limit or the driver refused so far.
  [[nodiscard]] std::optional<int64_t> smallest_refused_bytes() const { return smallest_refused_; }
  // A full release completes held blocks in the order of their frees, but for those that were put last: in that order.
  void hold_last(Block* block);
  // Blocks freed by free_held that are not complete yet.
  [[nodiscard]] size_t held_count() const { return held_.size(); }

  // --- a state to start from ---------------------------------------------------------------------------------------

  // Adds a segment with its blocks (sizes must sum to size_bytes). Statistics count it as current, without history.
  // Returns the blocks that are allocated or pending, in address order. A block may carry mapped = false in an
  // expandable range.
  std::vector<Block*> adopt_segment(uint64_t address, int64_t size_bytes, StreamId stream, PoolId pool, bool small,
                                    bool expandable, std::span<const AdoptedBlock> blocks);

  // Checks every invariant of blocks, sets and statistics; empty if all hold. Slow; for tests.
  [[nodiscard]] std::string check_invariants() const;

 private:
  struct Request {
    int64_t requested;
    int64_t size;  // rounded
    StreamId stream;
    BlockPool* pool;
    StreamBlocks* blocks;
    bool expandable;  // expandable segments serve this request
    bool suspended;   // no event polling, no full release: its stream is captured or, before 2.13, a scope is open
    bool rejected = false;
  };
  struct Scope {
    PoolId pool;
    std::optional<StreamId> stream;
    bool capturing;
  };

  // Kept out of malloc and free, which are made of one piece and would run out of registers with it.
#define OOM_APART [[gnu::noinline]]

  // allocator.cc
  OOM_APART [[nodiscard]] int64_t round_by_divisions(int64_t requested) const;
  [[nodiscard]] Segment* segment_at(uint64_t address, StreamId stream, const PrivatePool* owner) const;
  Request make_request(int64_t requested, StreamId stream, PrivatePool* owner, bool suspended);
  Block* allocate(Request& request);
  Block* find_or_make(Request& request);
  OOM_APART Block* make_block(Request& request);
  OOM_APART Block* refuse(const Request& request);
  Block* get_free_block(Request& request);
  Block* best_fit(const Request& request) const;
  OOM_APART Block* best_fit_from(Block* candidate, const Request& request) const;
  Block* alloc_block(Request& request, bool is_retry);
  Block* alloc_from_device(Request& request);
  [[nodiscard]] bool limit_allows(Request& request);
  void note_refusal(const Request& request);
  Block* try_use_on_oom_pools(Request& request);
  [[nodiscard]] bool should_split(const Request& request, const Block& block) const;
  Block* carve(Request& request, Block* block);
  Block* hand_out(Request& request, Block* block, bool split);
  void give_back(Block* block);
  int64_t try_merge(Block& into, Block* neighbour);
  void insert_free(Block& block);
  void remove_free(Block& block);
  OOM_APART void remove_unmapped(Block& block);
  Block* new_block(Segment* segment, uint64_t address, int64_t size);
  OOM_APART Block* block_of_arena();
  void delete_block(Block* block);
  Segment* new_segment(uint64_t address, int64_t size, StreamId stream, BlockPool* pool, bool expandable);
  void delete_segment(Segment* segment);
  [[nodiscard]] uint64_t block_order(const Segment& segment);
  void finish_free(Block* block);
  void poll_events() {
    if (!deferred_.empty() || !events_.empty()) process_events();
  }
  OOM_APART void process_events();
  OOM_APART void defer_or_queue(Block* block, StreamId current);
  void queue_events(Block* block);
  void queue_deferred(Block* block);
  [[nodiscard]] const Scope* scope_for(StreamId stream) const;
  [[nodiscard]] bool suspended_for(std::optional<StreamId> current) const;

  // reclaim.cc
  [[nodiscard]] bool gc_active() const {
    if (settings_.garbage_collection_threshold <= 0.0 || !limit_bytes_) return false;
    return !rules_.gc_needs_fraction_below_one || *limit_bytes_ < device_.total_bytes();
  }
  void garbage_collect();
  bool release_available(Request& request);
  void release_cached_blocks(bool default_pool, std::optional<PoolId> only);
  void synchronize_and_free_events(std::optional<PoolId> only);
  void release_blocks(BlockPool& pool);
  void release_block(Block* block);

  // expandable.cc
  Block* allocate_expandable(Request& request);
  Block* find_expandable_block(Request& request);
  bool map_block(Request& request, Block* to_map, int64_t size);
  Block* grow(Request& request, Block* candidate);
  struct AddressRange {
    uint64_t begin, end;
  };
  [[nodiscard]] AddressRange whole_pages(const Block& block) const;
  void unmap_block(Block* block);
  [[nodiscard]] int64_t page_bytes(const BlockPool& pool) const;
#undef OOM_APART

  RuleSet rules_;
  AllocatorSettings settings_;
  bool has_divisions_;  // does settings_.roundup_power2_divisions change any size?
  Device& device_;
  std::optional<int64_t> limit_bytes_;
  int64_t total_reserved_ = 0;
  Stats stats_;
  Refusal refusal_ = Refusal::none;
  int64_t address_ties_ = 0;
  std::optional<int64_t> smallest_refused_;

  BlockPool small_{.is_small = true, .owner = nullptr};
  BlockPool large_{.is_small = false, .owner = nullptr};
  std::map<PoolId, PrivatePool> private_pools_;
  std::vector<Scope> scopes_;

  std::vector<std::unique_ptr<Block[]>> arena_;
  size_t arena_used_ = 0;  // of the last piece
  std::vector<Block*> spare_blocks_;
  std::deque<Segment> segment_arena_;
  std::vector<Segment*> spare_segments_;
  std::vector<Segment*> segments_;
  uint64_t next_block_number_ = 0;
  uint64_t next_segment_number_ = 0;

  struct PendingEvent {
    EventId event;
    Block* block;
  };
  std::map<StreamId, std::deque<PendingEvent>> events_;  // a queue a using stream: a slow one does not hold the others
  std::vector<Block*> deferred_;                         // freed with stream uses while a capture was underway
  std::map<const Block*, std::vector<StreamId>> capture_uses_;  // uses that were recorded while suspended
  std::map<uint64_t, Block*> held_;                             // in the order of completion (Block::gc_base meanwhile)
  uint64_t next_held_number_ = 0;
};

}  // namespace oomscope
