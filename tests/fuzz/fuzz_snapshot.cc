// Any bytes: no crash, no hang, bounded memory, and the fast path for events changes nothing.
#include <cstddef>
#include <cstdint>
#include <span>

#include "evidence/snapshot_reader.h"

namespace {

bool same_events(const oomscope::Trace& a, const oomscope::Trace& b) {
  return a.action == b.action && a.addr == b.addr && a.size == b.size && a.stream_index == b.stream_index &&
         a.stack == b.stack && a.time_us == b.time_us && a.streams == b.streams && a.pool == b.pool &&
         a.forced == b.forced;
}

bool same_snapshots(const oomscope::Snapshot& a, const oomscope::Snapshot& b) {
  if (a.complete != b.complete || a.caveats != b.caveats || a.traces.size() != b.traces.size()) return false;
  if (a.segments.size() != b.segments.size() || a.blocks.size() != b.blocks.size()) return false;
  if (a.strings.size() != b.strings.size() || a.stacks.frame_ids != b.stacks.frame_ids) return false;
  for (size_t device = 0; device < a.traces.size(); ++device) {
    if (!same_events(a.traces[device], b.traces[device])) return false;
  }
  return true;
}

// All that a later stage would index with.
bool indices_are_valid(const oomscope::Snapshot& snapshot) {
  for (const oomscope::SnapshotSegment& segment : snapshot.segments) {
    if (size_t{segment.first_block} + segment.block_count > snapshot.blocks.size()) return false;
  }
  for (const oomscope::Trace& trace : snapshot.traces) {
    size_t events = trace.size_events();
    if (trace.addr.size() != events || trace.size.size() != events) return false;
    if (!trace.stream_index.values.empty() && trace.stream_index.values.size() != events) return false;
    if (trace.stack.size() != events || trace.time_us.size() != events) return false;
    if (!trace.pool.empty() && trace.pool.size() != events) return false;
    for (size_t i = 0; i < events; ++i) {
      if (static_cast<size_t>(trace.stack[i]) >= snapshot.stacks.size()) return false;
      if (trace.stream_index.at(i) >= trace.streams.size()) return false;
    }
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oomscope;
  std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  SnapshotReadOptions options{.max_memory_bytes = int64_t{256} << 20, .use_template = true};
  Result<Snapshot> fast = read_snapshot_bytes(bytes, "fuzz", options);
  options.use_template = false;
  Result<Snapshot> slow = read_snapshot_bytes(bytes, "fuzz", options);
  if (fast.has_value() != slow.has_value()) __builtin_trap();
  if (!fast.has_value()) {
    if (fast.error().code != slow.error().code || fast.error().where.empty()) __builtin_trap();
    return 0;
  }
  if (!indices_are_valid(*fast) || !same_snapshots(*fast, *slow)) __builtin_trap();
  return 0;
}
