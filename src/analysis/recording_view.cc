// From the model's tables to plain columns: one walk over the allocations, one over the events.
#include "analysis/recording_view.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "analysis/user_code.h"
#include "base/golden.h"

namespace oomscope {
namespace {

struct KindHash {
  size_t operator()(const LifeKind& kind) const {
    uint64_t hash = kind.stack;
    for (uint64_t part : {static_cast<uint64_t>(kind.requested), static_cast<uint64_t>(kind.size),
                          uint64_t{kind.stream}, uint64_t{kind.pool}, uint64_t{kind.category} << 8 | kind.reason}) {
      hash = (hash ^ part) * kGolden;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

class Viewer {
 public:
  Viewer(const Snapshot& snapshot, const Diagnosis& diagnosis, const RunFacts& facts)
      : snapshot_(snapshot), timeline_(diagnosis.verification->timeline), trace_(timeline_.trace()), facts_(facts) {
    const ExactReplay& replay = *diagnosis.verification->replay;
    view_.device = timeline_.device;
    view_.events = static_cast<uint32_t>(trace_.size_events());
    view_.peak_allocated = replay.peak_allocated();
    view_.peak_reserved = replay.peak_reserved();
    view_.peak_requested = replay.peak_requested();
    view_.instant = diagnosis.instant;
    view_.capacity = diagnosis.capacity;
    view_.floor_bytes = diagnosis.floor_bytes;
  }

  RecordingView run() {
    for (size_t i = 0; i < kCategories; ++i) view_.categories.push_back(name_of(static_cast<Category>(i)));
    for (size_t i = 0; i <= static_cast<size_t>(CategoryReason::private_pool); ++i) {
      view_.reasons.push_back(name_of(static_cast<CategoryReason>(i)));
    }
    for (StreamId stream : trace_.streams) view_.streams.push_back(static_cast<uint64_t>(stream));
    view_.pools = timeline_.pools;
    const bool has_times =
        std::any_of(trace_.time_us.begin(), trace_.time_us.end(), [](int64_t time) { return time != 0; });
    if (has_times) view_.time_us.assign(trace_.time_us.begin(), trace_.time_us.end());
    add_stacks();
    add_lives();
    add_driver_changes();
    add_failures();
    for (const Span& span : facts_.structure.spans) {
      view_.spans.push_back({.phase = name_of(span.phase), .begin = span.begin, .end = span.end, .step = span.step});
    }
    add_steps();
    return std::move(view_);
  }

 private:
  // Each stack becomes a path in one tree; stacks with the same outer frames share them.
  void add_stacks() {
    for (const Frame& frame : snapshot_.stacks.frames) {
      view_.frames.push_back({.name = std::string(snapshot_.strings.text(frame.name)),
                              .file = std::string(snapshot_.strings.text(frame.filename)),
                              .line = frame.line,
                              .is_library = is_library_frame(snapshot_, frame)});
    }
    std::unordered_map<uint64_t, uint32_t> children;
    std::map<std::string, uint32_t> site_numbers;
    view_.nodes.push_back({});
    const StackTable& stacks = snapshot_.stacks;
    for (uint32_t stack = 0; stack < stacks.size(); ++stack) {
      uint32_t node = 0;
      for (uint32_t i = stacks.starts[stack + 1]; i-- > stacks.starts[stack];) {
        const uint32_t frame = stacks.frame_ids[i];
        const auto [entry, made] =
            children.try_emplace(uint64_t{node} << 32 | frame, static_cast<uint32_t>(view_.nodes.size()));
        if (made) view_.nodes.push_back({.parent = node, .frame = frame});
        node = entry->second;
      }
      view_.stack_nodes.push_back(node);
      const std::string text = site_text(snapshot_, static_cast<StackId>(stack));
      const auto [site, made] = site_numbers.try_emplace(text, static_cast<uint32_t>(view_.sites.size()));
      if (made) {
        const std::optional<Frame> frame = user_frame(snapshot_, static_cast<StackId>(stack));
        view_.sites.push_back({.text = text, .user_code = frame && !is_library_frame(snapshot_, *frame)});
      }
      site_of_stack_.push_back(site->second);
    }
  }

  // What the replay could not place (size 0) never holds anything and is left out, as in every sum.
  void add_lives() {
    view_.life_of.assign(view_.events, kNever);
    view_.lives.reserve(timeline_.allocations.size());
    for (const bool of_start : {true, false}) {
      for (uint32_t i = 0; i < timeline_.allocations.size(); ++i) {
        const Allocation& allocation = timeline_.allocations[i];
        if ((allocation.begin == kNoEvent) != of_start || allocation.size == 0) continue;
        const uint32_t life = static_cast<uint32_t>(view_.lives.size());
        for (uint32_t event : {allocation.begin, allocation.free_requested, allocation.free_completed}) {
          if (event != kNoEvent) view_.life_of[event] = life;
        }
        view_.lives.push_back({.begin = allocation.begin,
                               .free_requested = allocation.free_requested,
                               .free_completed = allocation.free_completed,
                               .kind = kind_of(allocation, i),
                               .address = allocation.address});
      }
    }
  }

  uint32_t kind_of(const Allocation& allocation, uint32_t index) {
    const AllocationCategory& category = facts_.categories[index];
    const uint32_t stack = static_cast<uint32_t>(allocation.stack);
    const LifeKind kind{.stack = stack,
                        .site = site_of_stack_[stack],
                        .requested = allocation.requested,
                        .size = allocation.size,
                        .stream = allocation.stream_index,
                        .pool = allocation.pool_index,
                        .category = static_cast<uint8_t>(category.category),
                        .reason = static_cast<uint8_t>(category.reason),
                        .confidence = category.confidence};
    const auto [entry, made] = kind_numbers_.try_emplace(kind, static_cast<uint32_t>(view_.kinds.size()));
    if (made) view_.kinds.push_back(kind);
    return entry->second;
  }

  uint32_t stream_number(StreamId stream) {
    const auto found = std::find(view_.streams.begin(), view_.streams.end(), static_cast<uint64_t>(stream));
    const uint32_t number = static_cast<uint32_t>(found - view_.streams.begin());
    if (found == view_.streams.end()) view_.streams.push_back(static_cast<uint64_t>(stream));
    return number;
  }

  void add_driver_changes() {
    for (const StartSegment& segment : timeline_.start) add_start_segment(segment);
    for (uint32_t event : timeline_.driver_events) {
      const Action action = trace_.action[event];
      const bool is_gain = action == Action::segment_alloc || action == Action::segment_map;
      if (!is_gain && action != Action::segment_free && action != Action::segment_unmap) continue;
      const uint32_t served = is_gain ? request_after(event) : kNoAllocation;
      view_.driver.push_back({.event = event,
                              .is_gain = is_gain,
                              .is_pages = action == Action::segment_map || action == Action::segment_unmap,
                              .is_small = is_small_segment(event, served),
                              .address = trace_.addr[event],
                              .size = trace_.size[event],
                              .stream = trace_.stream_index.at(event),
                              .pool = is_gain ? pool_of(event, served) : 0,
                              .stack = static_cast<uint32_t>(trace_.stack[event])});
    }
  }

  void add_start_segment(const StartSegment& segment) {
    DriverChange change{.event = kNever,
                        .is_gain = true,
                        .is_pages = segment.is_expandable,
                        .is_small = segment.is_small,
                        .address = segment.address,
                        .size = 0,
                        .stream = stream_number(segment.stream),
                        .pool = segment.pool_index,
                        .stack = 0};
    for (const StartBlock& block : segment.blocks) {
      if (block.state != StartState::unmapped) {
        change.size += block.size;
        continue;
      }
      if (change.size > 0) view_.driver.push_back(change);
      change.address += static_cast<uint64_t>(change.size + block.size);
      change.size = 0;
    }
    if (change.size > 0) view_.driver.push_back(change);
  }

  // What the driver was asked for; kNoAllocation where that failed.
  [[nodiscard]] uint32_t request_after(uint32_t event) const {
    for (uint32_t next = event + 1; next < view_.events; ++next) {
      if (trace_.action[next] == Action::alloc) return timeline_.allocation_of[next];
      if (trace_.action[next] == Action::oom) break;
    }
    return kNoAllocation;
  }

  // Before torch 2.12 the event does not say.
  [[nodiscard]] uint32_t pool_of(uint32_t event, uint32_t served) const {
    if (trace_.pool.empty()) return served == kNoAllocation ? 0 : timeline_.allocations[served].pool_index;
    const auto found = timeline_.pool_numbers.find(trace_.pool[event]);
    return found == timeline_.pool_numbers.end() ? 0 : found->second;
  }

  [[nodiscard]] bool is_small_segment(uint32_t event, uint32_t served) const {
    constexpr int64_t kSmallSegment = int64_t{2} << 20;
    constexpr int64_t kLargestSmall = int64_t{1} << 20;
    if (served == kNoAllocation) return trace_.size[event] == kSmallSegment;
    return timeline_.allocations[served].requested <= kLargestSmall;
  }

  void add_failures() {
    for (uint32_t event : timeline_.driver_events) {
      if (trace_.action[event] != Action::oom) continue;
      view_.failures.push_back({.event = event,
                                .size = trace_.size[event],
                                .device_free = static_cast<int64_t>(trace_.addr[event]),
                                .stack = static_cast<uint32_t>(trace_.stack[event]),
                                .stream = trace_.stream_index.at(event),
                                .pool = pool_of_failure(view_.failures.size())});
    }
  }

  [[nodiscard]] uint32_t pool_of_failure(size_t index) const {
    const std::vector<PoolId>& pools = facts_.diagnosis->verification->replay->oom_pools();
    const auto found = index < pools.size() ? timeline_.pool_numbers.find(pools[index]) : timeline_.pool_numbers.end();
    return found == timeline_.pool_numbers.end() ? 0 : found->second;
  }

  // Steps end where the optimizer's did; without any, each call of the model is one.
  void add_steps() {
    std::vector<uint32_t> ends = facts_.structure.step_ends;
    view_.steps.are_passes = ends.empty();
    if (ends.empty()) {
      for (const Pass& pass : facts_.structure.passes) ends.push_back(pass.end);
    }
    if (ends.empty()) return;
    std::vector<StepUse>& steps = view_.steps.steps;
    uint32_t begin = 0;
    for (uint32_t end : ends) {
      if (end <= begin) continue;
      steps.push_back({.number = static_cast<int64_t>(steps.size()) + 1, .begin = begin, .end = end});
      begin = end;
    }
    if (begin < view_.events) {
      steps.push_back(
          {.number = static_cast<int64_t>(steps.size()) + 1, .begin = begin, .end = view_.events, .finished = false});
    }
    measure_steps();
    find_first_bad();
  }

  void measure_steps() {
    int64_t allocated = 0;
    int64_t active = 0;
    for (const Life& life : view_.lives) {
      if (life.begin != kNever) break;  // those of the start come first
      active += view_.kinds[life.kind].size;
      allocated += view_.kinds[life.kind].size;
    }
    for (StepUse& step : view_.steps.steps) {
      for (uint32_t event = step.begin; event < step.end; ++event) {
        if (view_.life_of[event] != kNever) {
          const Life& life = view_.lives[view_.life_of[event]];
          const int64_t size = view_.kinds[life.kind].size;
          if (event == life.begin) allocated += size, active += size;
          if (event == life.free_requested) allocated -= size;
          if (event == life.free_completed) active -= size;
        }
        if (allocated > step.peak_allocated || event == step.begin) {
          step.peak_allocated = allocated;
          step.peak_event = event;
        }
      }
      step.left_bytes = active;
    }
  }

  // See StepTable::first_bad. Growth of a step or two is no trend, and a thousandth of the peak no growth.
  void find_first_bad() {
    std::vector<StepUse>& steps = view_.steps.steps;
    const size_t finished = steps.size() - (steps.empty() || steps.back().finished ? 0 : 1);
    const int64_t trifle = std::max(kTrifleBytes, view_.peak_allocated.bytes / 1000);
    for (size_t k = 1; k + 1 < finished; ++k) {
      int64_t before = 0;
      for (size_t i = 0; i < k; ++i) before = std::max(before, steps[i].left_bytes);
      bool lasts = true;
      size_t grown = 0;
      for (size_t i = k; i < finished; ++i) {
        lasts &= steps[i].left_bytes > before;
        grown += steps[i].left_bytes > steps[i - 1].left_bytes ? 1 : 0;
      }
      const bool is_growth = steps[finished - 1].left_bytes - before > trifle;
      if (lasts && is_growth && grown >= 2 && grown * 2 >= finished - k) {
        view_.steps.first_bad = k;
        return;
      }
      if (k >= kMostCandidates) return;
    }
  }

  static constexpr int64_t kTrifleBytes = int64_t{1} << 20;
  static constexpr size_t kMostCandidates = 1000;  // each costs a walk over the steps

  const Snapshot& snapshot_;
  const Timeline& timeline_;
  const Trace& trace_;
  const RunFacts& facts_;
  RecordingView view_;
  std::vector<uint32_t> site_of_stack_;
  std::unordered_map<LifeKind, uint32_t, KindHash> kind_numbers_;
};

// Reserved bytes after each event, asked for in order.
class ReservedWalk {
 public:
  explicit ReservedWalk(const RecordingView& view) : driver_(view.driver) {
    for (; next_ < driver_.size() && driver_[next_].event == kNever; ++next_) bytes_ += driver_[next_].size;
  }
  int64_t after(uint32_t event) {
    for (; next_ < driver_.size() && driver_[next_].event <= event; ++next_) {
      bytes_ += driver_[next_].is_gain ? driver_[next_].size : -driver_[next_].size;
    }
    return bytes_;
  }

 private:
  const std::vector<DriverChange>& driver_;
  size_t next_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace

RecordingView view_recording(const Snapshot& snapshot, const Diagnosis& diagnosis, const RunFacts& facts) {
  return Viewer(snapshot, diagnosis, facts).run();
}

void add_curves(const Changes& changes, RecordingView& view) {
  view.page_floor_bytes = changes.page_floor_bytes;
  view.packing_bytes = changes.packing_bytes;
  view.curve_events = changes.curve_events;
  for (const SweepRun& run : changes.runs) {
    const Outcome& outcome = run.outcome.main;
    view.curves.push_back({.conf = run.conf,
                           .completed = outcome.completed,
                           .peak_reserved = outcome.peak_reserved,
                           .reserved = outcome.reserved_curve});
  }
}

SiteLayers largest_sites(const RecordingView& view) {
  constexpr size_t kMost = 10;
  std::vector<int64_t> now(view.sites.size(), 0);
  std::vector<int64_t> most(view.sites.size(), 0);
  const auto add = [&](const Life& life, int64_t sign) {
    const LifeKind& kind = view.kinds[life.kind];
    now[kind.site] += sign * kind.size;
    most[kind.site] = std::max(most[kind.site], now[kind.site]);
  };
  for (const Life& life : view.lives) {
    if (life.begin != kNever) break;
    add(life, 1);
  }
  for (uint32_t event = 0; event < view.events; ++event) {
    if (view.life_of[event] == kNever) continue;
    const Life& life = view.lives[view.life_of[event]];
    if (event == life.begin) add(life, 1);
    if (event == life.free_completed) add(life, -1);
  }
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < view.sites.size(); ++i) {
    if (most[i] > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return most[a] > most[b]; });
  const size_t own = std::min(order.size(), kMost);
  SiteLayers layers{.layer_of = std::vector<uint32_t>(view.sites.size(), static_cast<uint32_t>(own)), .names = {}};
  for (size_t i = 0; i < own; ++i) {
    layers.layer_of[order[i]] = static_cast<uint32_t>(i);
    layers.names.push_back(view.sites[order[i]].text);
  }
  return layers;
}

LayeredSeries layer_series(const RecordingView& view, Layers by, size_t columns) {
  LayeredSeries series;
  SiteLayers sites;
  if (by == Layers::site) {
    sites = largest_sites(view);
    series.names = sites.names;
  } else {
    series.names.assign(view.categories.begin(), view.categories.end());
  }
  const size_t rest = series.names.size();  // the rounding, or the other sites
  series.names.emplace_back();
  std::vector<int64_t> now(rest + 1, 0);
  int64_t active = 0;
  const auto add = [&](const Life& life, int64_t sign) {
    const LifeKind& kind = view.kinds[life.kind];
    active += sign * kind.size;
    if (by == Layers::site) {
      now[sites.layer_of[kind.site]] += sign * kind.size;
    } else {
      now[kind.category] += sign * kind.requested;
      now[rest] += sign * (kind.size - kind.requested);
    }
  };
  for (const Life& life : view.lives) {
    if (life.begin != kNever) break;
    add(life, 1);
  }
  columns = std::min<size_t>(columns, view.events);
  series.layers.assign(rest + 1, std::vector<int64_t>(columns, 0));
  ReservedWalk reserved(view);
  for (size_t column = 0; column < columns; ++column) {
    const uint32_t begin = static_cast<uint32_t>(column * view.events / columns);
    const uint32_t end = static_cast<uint32_t>((column + 1) * view.events / columns);
    int64_t most = -1;
    int64_t least = -1;
    int64_t most_reserved = 0;
    for (uint32_t event = begin; event < end; ++event) {
      if (view.life_of[event] != kNever) {
        const Life& life = view.lives[view.life_of[event]];
        if (event == life.begin) add(life, 1);
        if (event == life.free_completed) add(life, -1);
      }
      most_reserved = std::max(most_reserved, reserved.after(event));
      if (least < 0 || active < least) least = active;
      if (active <= most) continue;
      most = active;
      for (size_t layer = 0; layer <= rest; ++layer) series.layers[layer][column] = now[layer];
    }
    series.least.push_back(least);
    series.reserved.push_back(most_reserved);
  }
  return series;
}

}  // namespace oomscope
