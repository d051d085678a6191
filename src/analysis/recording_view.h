// RecordingView: a recording as plain columns, for what draws or exports it. No layer above needs the model for that.
//
// At every event the lives that hold then sum to the active bytes, by category (as requested, with the rounding apart)
// and by site (as blocks): the same numbers as `show --at EVENT`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run_facts.h"
#include "analysis/why.h"

namespace oomscope {

inline constexpr uint32_t kNever = kNoEvent;  // of a life: before the first event, or not in the recording

// What many lives share; a training loop of a million events has some hundred of these.
struct LifeKind {
  uint32_t stack = 0;
  uint32_t site = 0;      // into RecordingView::sites
  int64_t requested = 0;  // bytes
  int64_t size = 0;       // of the block
  uint32_t stream = 0;    // into RecordingView::streams
  uint32_t pool = 0;      // into RecordingView::pools
  uint8_t category = 0;   // into RecordingView::categories
  uint8_t reason = 0;     // into RecordingView::reasons
  Confidence confidence = Confidence::low;
  auto operator<=>(const LifeKind&) const = default;
};

// One allocation, from its event to that of its free. In the order of their begins, those of the start first.
struct Life {
  uint32_t begin = kNever;
  uint32_t free_requested = kNever;
  uint32_t free_completed = kNever;
  uint32_t kind = 0;
  uint64_t address = 0;
};

struct ViewSite {
  std::string text;  // "train.py:88 forward"; empty: no Python frames
  bool user_code = false;
};

struct ViewFrame {
  std::string name;
  std::string file;
  uint64_t line = 0;
  bool is_library = false;
};

// Stacks as a tree, outermost frame first: a node is a frame below its parent. Node 0 is the root.
struct StackNode {
  uint32_t parent = 0;
  uint32_t frame = 0;
};

// Memory that came from the driver or went back: a segment, or pages of an expandable one.
struct DriverChange {
  uint32_t event = kNever;  // kNever: there before the first event
  bool is_gain = true;
  bool is_pages = false;  // of an expandable segment
  bool is_small = false;  // for requests of at most 1 MiB; unknown of what goes back
  uint64_t address = 0;
  int64_t size = 0;
  uint32_t stream = 0;
  uint32_t pool = 0;
  uint32_t stack = 0;
};

struct FailedAttempt {
  uint32_t event = 0;
  int64_t size = 0;         // rounded
  int64_t device_free = 0;  // what the driver had left
  uint32_t stack = 0;
  uint32_t stream = 0;
  uint32_t pool = 0;
};

struct PhaseSpan {
  std::string_view phase;
  uint32_t begin = 0;
  uint32_t end = 0;  // half-open
  int step = 0;
};

// One step of the training loop, or one call of the model where no optimizer ran.
struct StepUse {
  int64_t number = 0;  // from 1
  uint32_t begin = 0;
  uint32_t end = 0;            // half-open
  int64_t peak_allocated = 0;  // inside
  uint32_t peak_event = 0;
  int64_t left_bytes = 0;  // active when it ended
  bool finished = true;    // false: the recording ends inside
};

struct StepTable {
  bool are_passes = false;
  std::vector<StepUse> steps;
  // The first step that left more than any before it and was never made good; empty: none, or too few to tell.
  std::optional<size_t> first_bad;
};

// The reserved bytes of the recording under one setting: each point is the most of its share of requests.
struct SettingCurve {
  std::string conf;
  bool completed = false;
  int64_t peak_reserved = 0;
  std::vector<int64_t> reserved;
};

struct RecordingView {
  int32_t device = 0;
  uint32_t events = 0;
  std::vector<int64_t> time_us;  // by event; empty: not recorded
  std::vector<Life> lives;
  std::vector<uint32_t> life_of;  // by event: what it begins or ends; kNever for other events
  std::vector<LifeKind> kinds;
  std::vector<ViewSite> sites;
  std::vector<ViewFrame> frames;
  std::vector<StackNode> nodes;
  std::vector<uint32_t> stack_nodes;  // by stack: its innermost node
  std::vector<std::string_view> categories;
  std::vector<std::string_view> reasons;
  std::vector<uint64_t> streams;
  std::vector<PoolId> pools;
  std::vector<DriverChange> driver;
  std::vector<FailedAttempt> failures;
  std::vector<PhaseSpan> spans;
  StepTable steps;
  Peak peak_allocated;
  Peak peak_reserved;
  Peak peak_requested;
  Instant instant;
  Capacity capacity;
  int64_t floor_bytes = 0;
  int64_t page_floor_bytes = 0;
  int64_t packing_bytes = 0;
  std::vector<uint32_t> curve_events;  // at which the points of the curves begin
  std::vector<SettingCurve> curves;    // best first
};

// Keeps nothing of the snapshot. The curves come later, when the replays are done.
[[nodiscard]] RecordingView view_recording(const Snapshot& snapshot, const Diagnosis& diagnosis, const RunFacts& facts);
void add_curves(const Changes& changes, RecordingView& view);

enum class Layers : uint8_t { category, site };

// The recording as stacked layers over `columns` shares of its events. Of each share the layers of the event at which
// most was active stand for it, so that no peak is lost and every column adds up.
struct LayeredSeries {
  std::vector<std::string> names;            // category names, or sites; the last is the rest
  std::vector<std::vector<int64_t>> layers;  // [layer][column]
  std::vector<int64_t> least;                // by column: the least that was active
  std::vector<int64_t> reserved;             // by column: the most
};
[[nodiscard]] LayeredSeries layer_series(const RecordingView& view, Layers by, size_t columns);

// Bytes by layer right after `event`, layers as in layer_series; they sum to the active bytes.
struct SiteLayers {
  std::vector<uint32_t> layer_of;  // by site
  std::vector<std::string> names;
};
// The sites that hold most, each at its own highest, and one layer for the rest.
[[nodiscard]] SiteLayers largest_sites(const RecordingView& view);

// Is the life live, or pending, right after the event?
[[nodiscard]] inline bool holds_after(const Life& life, uint32_t event) {
  const bool begun = life.begin == kNever || has_happened(life.begin, event);
  return begun && !has_happened(life.free_completed, event);
}

}  // namespace oomscope
