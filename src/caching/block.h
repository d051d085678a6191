// Block, Segment and the pools that own them: the allocator's data, without its rules.
//
// A segment is one cudaMalloc, or the whole address range of an expandable segment. It is a doubly linked list of
// blocks in address order. A block is in exactly one state:
//
//   allocated   handed out                                   in no set
//   pending     freed by the user, other streams still busy  in no set, event_count > 0
//   free        mapped and free                              in BlockPool's FreeSet of its stream
//   unmapped    expandable only                              in BlockPool's UnmappedSet of its stream
//
// Which *object* survives a split or a merge is part of the model, since requested_size (stale in free blocks),
// gc_base and the tie-break number live in the object: see CachingAllocator::carve and give_back.
#pragma once

#include <boost/intrusive/set.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "types/ids.h"

namespace oomscope {

struct BlockPool;
struct StreamBlocks;
struct Block;

struct Segment {
  uint64_t address = 0;
  int64_t size_bytes = 0;  // expandable: the whole range, mapped or not
  StreamId stream{};
  BlockPool* pool = nullptr;
  StreamBlocks* blocks = nullptr;  // the pool's, of this stream: where free and unmapped blocks of the segment are
  Block* first = nullptr;          // lowest address
  uint64_t counter = 0;            // the how-manieth segment of the process (TieBreak::segment_counter)
  bool is_expandable = false;
  size_t index = 0;  // position in the allocator's list of segments
};

using SetHook = boost::intrusive::set_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>,
                                                  boost::intrusive::optimize_size<true>>;

// Two cache lines: what a search, a split and a merge look at is in the first. Loads that miss are the engine's cost.
struct alignas(64) Block {
  uint64_t address = 0;
  int64_t size = 0;
  uint64_t order = 0;  // tie-break between equal sizes, before the address; 0 where only the address decides
  Block* prev = nullptr;
  Block* next = nullptr;
  Segment* segment = nullptr;
  uint64_t tag = 0;          // the caller's, untouched by the allocator
  uint32_t event_count = 0;  // > 0: pending
  bool allocated = false;
  bool mapped = true;
  bool held = false;      // pending until complete() says so, instead of by events
  bool has_uses = false;  // by other streams, since it was handed out

  int64_t requested_size = 0;  // of the current or, stale, of the last owner of this object; 0 if never handed out
  uint64_t gc_base = 0;        // the pool's search count when it became free; while held, its number
  std::vector<StreamId> stream_uses;  // which streams, if has_uses
  SetHook hook;                       // of the free set or the unmapped set: a block is never in both

  [[nodiscard]] bool is_split() const { return prev != nullptr || next != nullptr; }
  [[nodiscard]] bool is_idle() const { return !allocated && event_count == 0 && !has_uses; }
};
static_assert(offsetof(Block, requested_size) == 64 && sizeof(Block) == 128);

using BlockHook = boost::intrusive::member_hook<Block, SetHook, &Block::hook>;

struct ByAddress {
  bool operator()(const Block& a, const Block& b) const { return a.address < b.address; }
};
using UnmappedSet = boost::intrusive::multiset<Block, BlockHook, boost::intrusive::compare<ByAddress>,
                                               boost::intrusive::constant_time_size<false>>;

}  // namespace oomscope
