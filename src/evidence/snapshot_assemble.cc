#include "evidence/snapshot_assemble.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "types/limits.h"
#include "types/recording_call.h"

namespace oomscope {
namespace {

Slot value_of(std::span<const Slot> pairs, Word word) {
  Slot found;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (pairs[i].kind == SlotKind::text && word_of(StringId{pairs[i].index}) == word) found = pairs[i + 1];
  }
  return found;
}

bool is_empty_list(const Slot& slot) { return slot.kind == SlotKind::stack && slot.index == 0; }

double as_real(const Slot& slot) {
  return slot.kind == SlotKind::real ? std::bit_cast<double>(slot.bits) : static_cast<double>(slot.as_signed());
}

// "1", "2", "4" ... "32768": the table's 16 rows in MiB (CUDAAllocatorConfig's kRoundUpPowerOfTwoIntervals).
std::vector<int64_t> read_roundup(const ReaderTables& tables, const Slot& slot) {
  constexpr size_t kRows = 16;
  if (slot.kind != SlotKind::map) return {};
  std::vector<int64_t> rows(kRows, 0);
  const std::vector<Slot>& pairs = tables.maps[slot.index];
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (pairs[i].kind != SlotKind::text || !pairs[i + 1].is_integer()) continue;
    std::string_view key = tables.snapshot.strings.text(StringId{pairs[i].index});
    for (size_t row = 0; row < kRows; ++row) {
      if (key == std::to_string(1 << row)) rows[row] = pairs[i + 1].as_signed();
    }
  }
  return rows;
}

std::optional<RecordedSettings> read_settings(const ReaderTables& tables, const Slot& slot) {
  if (slot.kind != SlotKind::map) return std::nullopt;
  std::span<const Slot> pairs = tables.maps[slot.index];
  RecordedSettings settings;
  Slot conf = value_of(pairs, Word::conf);
  if (conf.kind == SlotKind::text) settings.conf = std::string(tables.snapshot.strings.text(StringId{conf.index}));
  Slot max_split = value_of(pairs, Word::max_split_size);
  // "Unlimited" is written as -1, or as SIZE_MAX by a writer that forgot to cast.
  if (max_split.is_integer()) settings.max_split_size_bytes = max_split.is_unsigned ? -1 : max_split.as_signed();
  Slot threshold = value_of(pairs, Word::garbage_collection_threshold);
  if (threshold.kind == SlotKind::real || threshold.is_integer()) {
    settings.garbage_collection_threshold = as_real(threshold);
  }
  Slot expandable = value_of(pairs, Word::expandable_segments);
  if (expandable.kind == SlotKind::boolean) settings.expandable_segments = expandable.bits != 0;
  settings.roundup_power2_divisions = read_roundup(tables, value_of(pairs, Word::roundup_power2_divisions));
  return settings;
}

// Keeps segments [first, first + count) and their blocks; host segments and blocks of half-read segments go.
void keep_segments(Snapshot& snapshot, uint32_t first, uint32_t count) {
  std::vector<SnapshotSegment>& segments = snapshot.segments;
  segments.erase(segments.begin() + static_cast<ptrdiff_t>(first) + count, segments.end());
  segments.erase(segments.begin(), segments.begin() + static_cast<ptrdiff_t>(first));
  size_t kept_blocks = 0;
  for (const SnapshotSegment& segment : segments) kept_blocks += segment.block_count;
  if (kept_blocks == snapshot.blocks.size()) return;
  std::vector<SnapshotBlock> blocks;
  blocks.reserve(kept_blocks);
  for (SnapshotSegment& segment : segments) {
    auto begin = snapshot.blocks.begin() + segment.first_block;
    segment.first_block = static_cast<uint32_t>(blocks.size());
    blocks.insert(blocks.end(), begin, begin + segment.block_count);
  }
  snapshot.blocks = std::move(blocks);
}

void place_traces(ReaderTables& tables, const Slot& slot) {
  std::vector<Trace>& traces = tables.snapshot.traces;
  if (slot.kind == SlotKind::trace) {
    traces.push_back(std::move(tables.traces[slot.index]->trace()));
    return;
  }
  if (slot.kind != SlotKind::traces) return;
  const std::vector<uint32_t>& list = tables.trace_lists[slot.index];
  std::vector<bool> taken(tables.traces.size(), false);
  for (uint32_t index : list) {
    traces.emplace_back();
    if (index == ReaderTables::kNoTrace || index >= taken.size()) continue;
    if (taken[index]) {
      ++tables.skipped_items;  // one list under two devices: no writer does that, and copying it could be a trap
      continue;
    }
    taken[index] = true;
    traces.back() = std::move(tables.traces[index]->trace());
  }
}

void note(Snapshot& snapshot, std::string code) {
  snapshot.caveats.push_back(Caveat{.code = std::move(code), .values = {}, .source = CaveatSource::recording});
}

void note_count(Snapshot& snapshot, std::string code, int64_t count) {
  if (count == 0) return;
  note(snapshot, std::move(code));
  snapshot.caveats.back().values.emplace_back("count", std::to_string(count));
}

struct SegmentFaults {
  int64_t sums = 0;       // blocks do not sum to the segment
  int64_t addresses = 0;  // a block does not start where the one before it ends
  int64_t values = 0;     // impossible sizes or devices: set to 0
};

SegmentFaults check_segment(Snapshot& snapshot, SnapshotSegment& segment, SizeBudget& budget) {
  SegmentFaults faults;
  auto clamp = [&faults, &budget](int64_t& size) {
    if (budget.takes(size)) return;
    size = 0;
    faults.values = 1;
  };
  if (segment.device < 0 || segment.device >= kMaxDevices) {
    segment.device = 0;
    faults.values = 1;
  }
  clamp(segment.total_size);
  clamp(segment.allocated_size);
  clamp(segment.active_size);
  clamp(segment.requested_size);
  // No address space ends there, and nobody behind the reader looks for the sum of an address and a size to wrap.
  if (segment.address > UINT64_MAX - static_cast<uint64_t>(segment.total_size)) {
    segment.total_size = 0;
    faults.values = 1;
  }
  uint64_t next = segment.address;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < segment.block_count; ++i) {
    SnapshotBlock& block = snapshot.blocks[segment.first_block + i];
    clamp(block.size);
    clamp(block.requested_size);
    if (block.address != next) faults.addresses = 1;
    next = block.address + static_cast<uint64_t>(block.size);
    sum += static_cast<uint64_t>(block.size);
  }
  if (sum != static_cast<uint64_t>(segment.total_size)) faults.sums = 1;
  return faults;
}

void check_segments(Snapshot& snapshot) {
  SegmentFaults total;
  SizeBudget budget;
  for (SnapshotSegment& segment : snapshot.segments) {
    SegmentFaults faults = check_segment(snapshot, segment, budget);
    total.sums += faults.sums;
    total.addresses += faults.addresses;
    total.values += faults.values;
  }
  note_count(snapshot, "segment-sum-wrong", total.sums);
  note_count(snapshot, "block-addresses-wrong", total.addresses);
  note_count(snapshot, "segment-values-wrong", total.values);
}

// By memchr, which scans a million bytes in 20 us where nothing is found.
int64_t count_unknown(const LargeVector<Action>& actions) {
  int64_t count = 0;
  const uint8_t* at = reinterpret_cast<const uint8_t*>(actions.data());
  const uint8_t* end = at + actions.size();
  while (at < end) {
    const void* found = std::memchr(at, static_cast<int>(Action::unknown), static_cast<size_t>(end - at));
    if (found == nullptr) break;
    ++count;
    at = static_cast<const uint8_t*>(found) + 1;
  }
  return count;
}

// The dump itself, and the end of a free that was asked for before, are not what anybody asked for since.
bool is_history(Action action) { return action != Action::snapshot && action != Action::free_completed; }

// Before torch 2.1 a recording that was only switched on has a ring of one entry, which the dump itself may have taken;
// of later releases a dump with no event before it looks like that.
bool is_of_ring_of_one(const Snapshot& snapshot, const Trace& trace) {
  return trace.action[0] != Action::snapshot || is_before_torch_2_1(snapshot);
}

void note_no_history(Snapshot& snapshot, size_t events, bool has_ring_of_one) {
  const auto live = std::count_if(snapshot.blocks.begin(), snapshot.blocks.end(),
                                  [](const SnapshotBlock& block) { return block.state != BlockState::inactive; });
  if (events == 1 && live <= 1) return;  // that may be all there was
  note(snapshot, has_ring_of_one ? "last-event-only" : "no-history");
  snapshot.caveats.back().values.emplace_back("call", recording_call(snapshot));
}

void check_traces(ReaderTables& tables, bool is_damaged, bool ends_in_segments) {
  Snapshot& snapshot = tables.snapshot;
  size_t events = 0;
  bool has_ring_of_one = false;
  int64_t unknown_actions = 0;
  for (Trace& trace : snapshot.traces) {
    has_ring_of_one = has_ring_of_one || (trace.size_events() == 1 && is_of_ring_of_one(snapshot, trace));
    if (!is_damaged && std::none_of(trace.action.begin(), trace.action.end(), is_history)) trace = Trace{};
    events += trace.size_events();
    unknown_actions += count_unknown(trace.action);
  }
  if (ends_in_segments) {
    note(snapshot, "segments-cut-off");
    snapshot.caveats.back().values.emplace_back("count", std::to_string(snapshot.segments.size()));
  } else if (events <= 1) {
    note_no_history(snapshot, events, has_ring_of_one);
  }
  note_count(snapshot, "unknown-actions", unknown_actions);
  note_count(snapshot, "events-unreadable", tables.unreadable_events);
  note_count(snapshot, "segments-unreadable", tables.unreadable_segments);
  note_count(snapshot, "items-skipped", tables.skipped_items);
}

// CUDA graph trees restore the state of their pool before they record the next graph: the events look like those of
// other allocs, only their stack tells. Functions of torch/_inductor/cudagraph_trees.py and c10/cuda.
bool restores_checkpoint(std::string_view function) {
  return function == "apply_checkpoint_execution_state_in_allocator" ||
         function.find("::setCheckpointPoolState(") != std::string_view::npos;
}

void mark_restored(Snapshot& snapshot) {
  const std::vector<bool> stack_restores = stacks_that_call(snapshot, restores_checkpoint);
  if (stack_restores.empty()) return;
  for (Trace& trace : snapshot.traces) {
    for (uint32_t event = 0; event < trace.size_events(); ++event) {
      const bool is_restored =
          trace.action[event] == Action::alloc && stack_restores[static_cast<size_t>(trace.stack[event])];
      if (is_restored) trace.restored.push_back(event);
    }
  }
}

Error not_a_snapshot(std::string what) { return Error{"not-a-snapshot", std::move(what), "", "error.dump-snapshot"}; }

void take_annotations(Snapshot& snapshot, const Slot& slot) {
  std::vector<Annotation>& annotations = snapshot.annotations;
  if (slot.kind != SlotKind::annotations) return annotations.clear();
  annotations.erase(annotations.begin() + static_cast<ptrdiff_t>(slot.index + slot.bits), annotations.end());
  annotations.erase(annotations.begin(), annotations.begin() + static_cast<ptrdiff_t>(slot.index));
}

}  // namespace

Result<Snapshot> assemble_snapshot(ReaderTables& tables, const SnapshotMachine::Top& top, bool is_damaged) {
  Snapshot& snapshot = tables.snapshot;
  Slot segments = top.slot;
  bool ends_in_segments = is_damaged;
  if (top.slot.kind == SlotKind::dict) {
    std::span<const Slot> pairs = top.pairs;
    KeySet keys = keys_of(pairs);
    if (!keys.has(Word::segments) && !keys.has(Word::device_traces)) {
      return not_a_snapshot("error.without-segments");
    }
    ends_in_segments = is_damaged && !keys.has(Word::device_traces);
    segments = value_of(pairs, Word::segments);
    bool is_list = segments.kind == SlotKind::segments || is_empty_list(segments);
    if (keys.has(Word::segments) && !is_list) return not_a_snapshot("error.segments-no-list");
    place_traces(tables, value_of(pairs, Word::device_traces));
    snapshot.settings = read_settings(tables, value_of(pairs, Word::allocator_settings));
    take_annotations(snapshot, value_of(pairs, Word::external_annotations));
    snapshot.features.host_segments = keys.has(Word::host_segments);
  } else if (segments.kind != SlotKind::segments && !is_empty_list(segments)) {
    return not_a_snapshot("error.not-a-snapshot");
  }
  bool has_segments = segments.kind == SlotKind::segments;
  keep_segments(snapshot, has_segments ? segments.index : 0, has_segments ? static_cast<uint32_t>(segments.bits) : 0);
  check_segments(snapshot);
  check_traces(tables, is_damaged, ends_in_segments);
  mark_restored(snapshot);
  return std::move(snapshot);
}

}  // namespace oomscope
