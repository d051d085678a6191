// Private pools, the scopes that route allocations to them, and the events that guard blocks of several streams.
//
// Source: beginAllocateToPool, endAllocateToPool, releasePool, recordStream, insert_events, process_events.
#include <algorithm>

#include "caching/allocator.h"

namespace oomscope {

// --- pools and scopes
// --------------------------------------------------------------------------------------------------

PrivatePool& CachingAllocator::private_pool(PoolId id) {
  auto [entry, made] = private_pools_.try_emplace(id);
  PrivatePool& pool = entry->second;
  if (made) pool.id = id;
  // PyTorch deletes a freeable pool with its last segment; the next use makes it anew.
  if (pool.freeable() && pool.device_allocations == 0) pool.use_count = 1;
  return pool;
}

bool CachingAllocator::begin_allocate_to_pool(PoolId pool, std::optional<StreamId> stream, bool capturing) {
  for (const Scope& scope : scopes_) {
    if (scope.pool == pool) return false;
  }
  const bool known = private_pools_.count(pool) != 0;
  PrivatePool& entry = private_pool(pool);
  if (known) entry.use_count += 1;
  scopes_.push_back(Scope{.pool = pool, .stream = stream, .capturing = capturing});
  return true;
}

void CachingAllocator::end_allocate_to_pool(PoolId pool) {
  scopes_.erase(std::remove_if(scopes_.begin(), scopes_.end(), [&](const Scope& scope) { return scope.pool == pool; }),
                scopes_.end());
}

void CachingAllocator::release_pool(PoolId pool) {
  PrivatePool& entry = private_pool(pool);
  if (entry.use_count > 0) entry.use_count -= 1;
}

const CachingAllocator::Scope* CachingAllocator::scope_for(StreamId stream) const {
  auto serves = [&](const Scope& scope) { return !scope.stream || *scope.stream == stream; };
  if (rules_.newest_scope_first) {
    auto found = std::find_if(scopes_.rbegin(), scopes_.rend(), serves);
    return found == scopes_.rend() ? nullptr : &*found;
  }
  auto found = std::find_if(scopes_.begin(), scopes_.end(), serves);
  return found == scopes_.end() ? nullptr : &*found;
}

// PyTorch asks the calling thread's current stream; a malloc is for it.
bool CachingAllocator::suspended_for(std::optional<StreamId> current) const {
  if (!rules_.only_capture_suspends) return !scopes_.empty();
  return std::any_of(scopes_.begin(), scopes_.end(), [current](const Scope& scope) {
    return scope.capturing && (!current || !scope.stream || *scope.stream == *current);
  });
}

// --- events
// --------------------------------------------------------------------------------------------------------------

// Takes effect when the block is freed: the events are recorded then, not at the use.
void CachingAllocator::record_stream(Block* block, StreamId stream, std::optional<StreamId> current) {
  if (stream == block->segment->stream) return;
  block->has_uses = true;
  std::vector<StreamId>& uses = block->stream_uses;
  if (std::find(uses.begin(), uses.end(), stream) == uses.end()) uses.push_back(stream);
  if (rules_.uses_end_with_capture && suspended_for(current.value_or(block->segment->stream))) {
    std::vector<StreamId>& captured = capture_uses_[block];
    if (std::find(captured.begin(), captured.end(), stream) == captured.end()) captured.push_back(stream);
  }
}

// One event a using stream; while a capture is underway nothing may be recorded and the block waits for its end.
void CachingAllocator::defer_or_queue(Block* block, StreamId current) {
  if (suspended_for(current)) {
    deferred_.push_back(block);
  } else {
    queue_events(block);
  }
}

// Of a deferred block. Uses inside a capture are over with it: they need no events, and without any other use the block
// returns at once (remove_cudagraph_stream_uses). A block that was freed outside keeps its entry for the next owner.
void CachingAllocator::queue_deferred(Block* block) {
  const auto in_capture = capture_uses_.find(block);
  if (in_capture != capture_uses_.end()) {
    const std::vector<StreamId>& over = in_capture->second;
    std::erase_if(block->stream_uses,
                  [&](StreamId stream) { return std::find(over.begin(), over.end(), stream) != over.end(); });
    capture_uses_.erase(in_capture);
  }
  queue_events(block);
  if (block->event_count == 0) give_back(block);
}

void CachingAllocator::queue_events(Block* block) {
  std::vector<StreamId> uses;
  uses.swap(block->stream_uses);
  block->has_uses = false;
  for (StreamId stream : uses) {
    block->event_count += 1;
    events_[stream].push_back(PendingEvent{device_.record_event(stream), block});
  }
}

// Returns the blocks whose events are done. A queue stops at its first unfinished event; the others go on.
void CachingAllocator::process_events() {
  if (!deferred_.empty()) {
    std::vector<Block*> deferred;
    deferred.swap(deferred_);
    for (Block* block : deferred) queue_deferred(block);
  }
  for (auto entry = events_.begin(); entry != events_.end();) {
    std::deque<PendingEvent>& queue = entry->second;
    while (!queue.empty() && device_.event_done(queue.front().event)) {
      Block* block = queue.front().block;
      queue.pop_front();
      block->event_count -= 1;
      if (block->event_count == 0) give_back(block);
    }
    entry = queue.empty() ? events_.erase(entry) : std::next(entry);
  }
}

}  // namespace oomscope
