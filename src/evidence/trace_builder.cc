#include "evidence/trace_builder.h"

#include <cstdint>

namespace oomscope {

uint32_t TraceBuilder::stream_index(StreamId stream) {
  auto [found, is_new] =
      stream_indices_.try_emplace(static_cast<uint64_t>(stream), static_cast<uint32_t>(trace_.streams.size()));
  if (is_new) trace_.streams.push_back(stream);
  return found->second;
}

void TraceBuilder::append(const EventRow& row) {
  size_t before = size_events();
  trace_.compile_context.append(before, row.compile_context);
  trace_.user_metadata.append(before, row.user_metadata);
  if (row.has_pool && trace_.pool.empty()) trace_.pool.assign(before, PoolId{});
  if (row.has_pool || !trace_.pool.empty()) trace_.pool.push_back(row.pool);
  if (row.is_forced) trace_.forced.push_back(static_cast<uint32_t>(before));
  trace_.addr.push_back(row.addr);
  trace_.size.push_back(row.size);
  trace_.stream_index.append(before, stream_index(row.stream));
  trace_.stack.push_back(row.stack);
  if (keeps_times_) trace_.time_us.push_back(row.time_us);
  trace_.action.push_back(row.action);
}

void TraceBuilder::reserve(size_t events) {
  trace_.action.reserve(events);
  trace_.addr.reserve(events, kMostAtOnce);
  trace_.size.reserve(events);
  trace_.stack.reserve(events);
  if (keeps_times_) trace_.time_us.reserve(events);
}

int64_t TraceBuilder::memory_bytes() const {
  constexpr size_t kMapNodeBytes = 64;
  size_t bytes = sizeof(TraceBuilder) + size_events() * kBytesPerEvent + trace_.pool.capacity() * sizeof(PoolId) +
                 trace_.forced.capacity() * sizeof(uint32_t) +
                 trace_.compile_context.values.capacity() * sizeof(StringId) +
                 trace_.user_metadata.values.capacity() * sizeof(StringId) +
                 trace_.stream_index.values.capacity() * sizeof(uint32_t) +
                 trace_.streams.capacity() * (sizeof(StreamId) + kMapNodeBytes);
  return static_cast<int64_t>(bytes);
}

}  // namespace oomscope
