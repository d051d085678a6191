// Device: what the allocator asks of the CUDA driver. The only thing that replay, planning and the live drop-in
// replace: a recording answers from its events, a what-if from a model of the address space, the drop-in from the
// driver itself. The calls also are the observer: their order is the order of PyTorch's segment_* trace entries.
#pragma once

#include <cstdint>

#include "types/ids.h"

namespace oomscope {

enum class EventId : uint64_t {};

class Device {
 public:
  virtual ~Device() = default;

  // cudaMalloc of `size_bytes` (a multiple of 2 MiB). 0 means out of memory.
  virtual uint64_t allocate(int64_t size_bytes, StreamId stream) = 0;
  // cudaFree of a whole segment.
  virtual void release(uint64_t address, int64_t size_bytes) = 0;

  // cuMemAddressReserve for one expandable segment. 0 means refused.
  virtual uint64_t reserve(int64_t size_bytes, int64_t page_bytes) = 0;
  virtual void release_range(uint64_t address, int64_t size_bytes) = 0;
  // Physical pages for [address, address + size_bytes), a multiple of `page_bytes`. False means out of memory: then
  // nothing was mapped.
  virtual bool map(uint64_t address, int64_t size_bytes, int64_t page_bytes) = 0;
  virtual void unmap(uint64_t address, int64_t size_bytes) = 0;

  // cudaMemGetInfo's total, for the size of expandable ranges and for a memory fraction.
  [[nodiscard]] virtual int64_t total_bytes() const = 0;

  // Events guard frees of blocks that other streams used. A replayed recording does not need them.
  virtual EventId record_event(StreamId) { return EventId{}; }
  virtual bool event_done(EventId) { return true; }
  virtual void wait_event(EventId) {}
};

}  // namespace oomscope
