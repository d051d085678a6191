#include "replay/what_if.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "model/fatal_oom.h"
#include "model/stack_traits.h"

namespace oomscope {
namespace {

class StreamBuilder {
 public:
  explicit StreamBuilder(const Verification& v) : v_(v), timeline_(v.timeline), trace_(v.timeline.trace()) {}

  RequestStream run() {
    out_.pools = timeline_.pools;
    add_allocations();
    add_start();
    const std::vector<ExplicitRelease>& releases = v_.replay->explicit_releases();
    size_t next_release = 0;
    for (uint32_t event = 0; event < trace_.size_events(); ++event) {
      for (; next_release < releases.size() && releases[next_release].event <= event; ++next_release) {
        add_release(releases[next_release]);
      }
      add_event(event);
    }
    for (; next_release < releases.size(); ++next_release) add_release(releases[next_release]);
    if (v_.replay->from_the_beginning()) find_address_hints();
    if (!out_.failures.empty() && fatal_oom(trace_)) out_.failures.back().last = true;
    return std::move(out_);
  }

 private:
  void add(RequestKind kind, uint32_t id) {
    out_.kind.push_back(kind);
    out_.id.push_back(id);
  }

  uint32_t place_of(StreamId stream, PoolId pool, bool needs_it = false) {
    if (!out_.places.empty()) {
      const RequestStream::Place& last = out_.places[last_place_];
      if (last.stream == stream && last.pool == pool && last.needs_it == needs_it) return last_place_;
    }
    const auto [entry, made] =
        place_numbers_.try_emplace(std::tuple(stream, pool, needs_it), static_cast<uint32_t>(out_.places.size()));
    if (made) out_.places.push_back(RequestStream::Place{stream, pool, needs_it});
    return last_place_ = entry->second;
  }

  // By stack: does it say that no library asks, which could do without? Convolutions are asked for by cuDNN, whose
  // scratch in backward has no Python frames.
  static std::vector<bool> stacks_that_need(const Snapshot& snapshot) {
    std::vector<bool> needs;
    for (const StackTraits& stack : stack_traits(snapshot)) {
      const bool is_own = std::ranges::any_of(
          std::array{StackRole::optimizer, StackRole::zero_grad, StackRole::model, StackRole::file_load,
                     StackRole::copy, StackRole::state_dict, StackRole::data, StackRole::loss},
          [&](StackRole role) { return role == stack.role; });
      const bool is_product = stack.has(Trait::linear) || stack.has(Trait::softmax) || stack.has(Trait::attention);
      // A line of the program outside of all modules: what it asks for is its own, where it is not a convolution's.
      const bool is_users = stack.has(Trait::python) && !stack.has(Trait::module_call) && !stack.has(Trait::backward);
      needs.push_back((is_own || is_product || is_users) && !stack.has(Trait::convolution));
    }
    return needs;
  }

  void add_allocations() {
    const size_t count = timeline_.allocations.size();
    out_.kind.reserve(trace_.size_events() * 3 / 4 + 16);
    out_.id.reserve(trace_.size_events() * 3 / 4 + 16);
    out_.size.reserve(count);
    out_.place.reserve(count);
    out_.begin.reserve(count);
    const std::vector<bool> needs = stacks_that_need(*timeline_.snapshot);
    const auto needs_it = [&](StackId stack) {
      const size_t index = static_cast<size_t>(stack);
      return index < needs.size() && needs[index];
    };
    for (const Allocation& allocation : timeline_.allocations) {
      const StreamId stream =
          allocation.stream_index < trace_.streams.size() ? trace_.streams[allocation.stream_index] : StreamId{};
      out_.size.push_back(allocation.requested);
      out_.place.push_back(place_of(stream, timeline_.pools[allocation.pool_index], needs_it(allocation.stack)));
      out_.begin.push_back(allocation.begin);
    }
  }

  // The live blocks of the start are allocated anew, in address order.
  void add_start() {
    if (v_.replay->from_the_beginning() && !timeline_.start.empty()) add_first_tensor();
    for (const StartSegment& segment : timeline_.start) {
      for (const StartBlock& block : segment.blocks) {
        if (block.allocation == kNoAllocation) continue;
        out_.from_mid_life = true;
        // The segment knows the stream also where no event names it.
        out_.place[block.allocation] = place_of(segment.stream, timeline_.pools[segment.pool_index]);
        add(RequestKind::malloc, block.allocation);
        if (block.state == StartState::pending) add(RequestKind::free_held, block.allocation);
      }
    }
  }

  // One idle small segment at the start: the first tensor of the process came before the recording, here as there.
  void add_first_tensor() {
    constexpr int64_t kOneFloat = 4;
    const uint32_t id = static_cast<uint32_t>(out_.size.size());
    out_.size.push_back(kOneFloat);
    out_.place.push_back(place_of(timeline_.start[0].stream, PoolId{}));
    out_.begin.push_back(kNoEvent);
    add(RequestKind::malloc, id);
    add(RequestKind::free, id);
  }

  void add_release(const ExplicitRelease& release) {
    for (uint32_t pool : release.pools) add(RequestKind::empty_pool, pool);
    if (release.everything) add(RequestKind::empty_cache, 0);
  }

  void add_event(uint32_t event) {
    const uint32_t id = timeline_.allocation_of[event];
    switch (trace_.action[event]) {
      case Action::alloc: add(RequestKind::malloc, id); break;
      case Action::free_requested: {
        if (id == kNoAllocation) break;
        const bool at_once = is_freed_at_once(timeline_, event);
        add(at_once ? RequestKind::free : RequestKind::free_held, id);
        at_once_ = at_once;
        break;
      }
      case Action::free_completed:
        if (id != kNoAllocation && !at_once_) add(RequestKind::complete, id);
        at_once_ = false;
        break;
      case Action::oom: {
        add(RequestKind::failed, static_cast<uint32_t>(out_.failures.size()));
        out_.failures.push_back(
            RequestStream::Failure{.event = event,
                                   .size = trace_.size[event],
                                   .place = {trace_.stream(event), v_.replay->oom_pools()[out_.failures.size()]},
                                   .last = false});
        break;
      }
      default: break;
    }
  }

  // The first segments of a process fill the holes that the context left below the first one, lowest first: a large one
  // shows where the large hole begins, a small one just below it the small hole.
  void find_address_hints() {
    constexpr uint64_t kFar = uint64_t{2} << 30;    // farther below is a new chunk
    constexpr uint64_t kNear = uint64_t{32} << 20;  // a smaller hole in front of the large one
    uint64_t first = timeline_.start.empty() ? 0 : timeline_.start[0].address;
    uint64_t large = 0;
    uint64_t small = 0;
    for (size_t i = 0; i < trace_.size_events(); ++i) {
      if (trace_.action[i] == Action::segment_map) return;  // expandable: no addresses to learn from
      if (trace_.action[i] != Action::segment_alloc) continue;
      const uint64_t address = trace_.addr[i];
      if (first == 0) {
        first = address;
        continue;
      }
      const bool is_small = trace_.size[i] == kSmallBuffer;
      if (large == 0 && !is_small) {
        if (address >= first || first - address > kFar) return;
        large = address;
      }
      if (is_small && large != 0 && address < large && large - address < kNear)
        small = small == 0 ? address : std::min(small, address);
    }
    if (large == 0) return;
    out_.address_hints.first_segment = first;
    if (small != 0) out_.address_hints.holes.emplace_back(small, static_cast<int64_t>(large - small));
    out_.address_hints.holes.emplace_back(large, static_cast<int64_t>(first - large));
  }

  const Verification& v_;
  const Timeline& timeline_;
  const Trace& trace_;
  RequestStream out_;
  std::map<std::tuple<StreamId, PoolId, bool>, uint32_t> place_numbers_;
  uint32_t last_place_ = 0;
  bool at_once_ = false;
};

class Run {
 public:
  Run(const RequestStream& requests, const WhatIf& question)
      : requests_(requests),
        question_(question),
        device_(question.policy, question.card_bytes.value_or(kBoundlessCard), requests.address_hints,
                room_on_card(question)),
        allocator_(question.rules, question.settings, device_),
        blocks_(requests.size.size(), nullptr) {
    const bool is_limit = question.cap_kind == CapKind::limit;
    if (is_limit && question.cap_from_event == 0) allocator_.set_memory_limit(question.cap_bytes);
    outcome_.failure_served.resize(requests.failures.size(), false);
  }

  Outcome run() {
    outcome_.completed = true;
    const size_t count = requests_.kind.size();
    const size_t points = std::min(question_.curve_points, count);
    if (points == 0) serve(serve_start(), count);
    for (size_t point = 0; point < points && outcome_.completed; ++point) {
      most_reserved_ = allocator_.reserved_bytes();
      serve(count * point / points, count * (point + 1) / points);
      outcome_.reserved_curve.push_back(most_reserved_);
    }
    fill();
    return outcome_;
  }

 private:
  static int64_t room_on_card(const WhatIf& question) {
    const bool is_card = question.cap_kind == CapKind::card && question.cap_bytes;
    return is_card ? *question.cap_bytes : kBoundlessCard;
  }

  // The blocks of the start, if in another order than the requests'. Returns where the rest begins.
  size_t serve_start() {
    if (!requests_.from_mid_life || question_.start_order == StartOrder::by_address) return 0;
    struct Asked {
      size_t begin;
      size_t end;  // behind its free, if it is pending
      int64_t bytes;
    };
    std::vector<Asked> start;
    size_t end = 0;
    while (end < requests_.kind.size() && requests_.begin[requests_.id[end]] == kNoEvent &&
           requests_.kind[end] == RequestKind::malloc) {
      const bool is_pending = end + 1 < requests_.kind.size() && requests_.id[end + 1] == requests_.id[end] &&
                              requests_.kind[end + 1] == RequestKind::free_held;
      start.push_back({end, end + (is_pending ? 2 : 1), requests_.size[requests_.id[end]]});
      end = start.back().end;
    }
    if (question_.start_order == StartOrder::backwards) {
      std::reverse(start.begin(), start.end());
    } else {
      std::stable_sort(start.begin(), start.end(), [](const Asked& a, const Asked& b) { return a.bytes > b.bytes; });
    }
    for (const Asked& block : start) serve(block.begin, block.end);
    return end;
  }

  // Requests [begin, end), or up to the one that was refused.
  void serve(size_t begin, size_t end) {
    for (size_t i = begin; i < end && outcome_.completed; ++i) {
      const uint32_t id = requests_.id[i];
      switch (requests_.kind[i]) {
        case RequestKind::malloc: malloc(i, id); break;
        case RequestKind::free:
          if (Block* block = std::exchange(blocks_[id], nullptr)) allocator_.free(block);
          break;
        case RequestKind::free_held:
          if (blocks_[id] != nullptr) allocator_.free_held(blocks_[id]);
          break;
        case RequestKind::complete: complete(id); break;
        case RequestKind::empty_cache: allocator_.empty_cache(); break;
        case RequestKind::empty_pool:
          allocator_.private_pool(requests_.pools[id]).use_count = 0;
          allocator_.empty_pool(requests_.pools[id]);
          break;
        case RequestKind::failed: failed(i, id); break;
      }
      most_reserved_ = std::max(most_reserved_, allocator_.reserved_bytes());
    }
  }

  // A full release may have completed it already; then the object is somebody else's by now.
  void complete(uint32_t id) {
    Block* block = std::exchange(blocks_[id], nullptr);
    if (block != nullptr && block->held && block->tag == tag_of(id)) allocator_.complete(block);
  }

  void reach(uint32_t event) {
    if (question_.cap_from_event == 0 || has_late_cap_ || event == kNoEvent || event < question_.cap_from_event) return;
    has_late_cap_ = true;
    reserved_under_cap_ = reserved_within_cap();
    allocator_.set_memory_limit(question_.cap_bytes);
  }

  // What is above a cap that came late is cache of before, given back as soon as it is in the way.
  [[nodiscard]] int64_t reserved_within_cap() const {
    return std::min(allocator_.reserved_bytes(), question_.cap_bytes.value_or(allocator_.reserved_bytes()));
  }

  Block* ask(int64_t bytes, const RequestStream::Place& place) {
    Block* block = allocator_.malloc_in_pool(bytes, place.stream, place.pool);
    if (has_late_cap_) reserved_under_cap_ = std::max(reserved_under_cap_, reserved_within_cap());
    return block;
  }

  void malloc(size_t index, uint32_t id) {
    reach(requests_.begin[id]);
    const RequestStream::Place& place = requests_.places[requests_.place[id]];
    Block* block = ask(requests_.size[id], place);
    blocks_[id] = block;
    if (block != nullptr) block->tag = tag_of(id);
    if (block != nullptr || requests_.size[id] <= 0) return;
    // A library tries one plan after the other: its scratch fails, and is "freed" by the very next operation of the
    // recording, where it had succeeded. A temporary of an optimizer looks alike, but its refusal ends the program.
    const bool library_try =
        !place.needs_it && index + 1 < requests_.kind.size() && requests_.id[index + 1] == id &&
        (requests_.kind[index + 1] == RequestKind::free || requests_.kind[index + 1] == RequestKind::free_held);
    if (library_try) {
      outcome_.library_tries += 1;
      return;
    }
    stop(index, requests_.begin[id], requests_.size[id]);
  }

  void failed(size_t index, uint32_t id) {
    const RequestStream::Failure& failure = requests_.failures[id];
    reach(failure.event);
    Block* block = ask(failure.size, failure.place);
    outcome_.failure_served[id] = block != nullptr;
    if (block == nullptr) {
      if (failure.last) stop(index, failure.event, failure.size);
      return;
    }
    // What the program would have done with it is unknown, unless it died of the failure: then it holds it to the end.
    if (!failure.last) allocator_.free(block);
  }

  void stop(size_t request, uint32_t event, int64_t bytes) {
    outcome_.completed = false;
    outcome_.stopped_at_request = request;
    outcome_.stopped_at_event = event;
    outcome_.refused_bytes = bytes;
    outcome_.impossible = allocator_.refusal() == Refusal::impossible;
  }

  void fill() {
    const Stats& stats = allocator_.stats();
    outcome_.peak_requested = stats.requested_bytes.all().peak;
    outcome_.peak_allocated = stats.allocated_bytes.all().peak;
    outcome_.peak_reserved = has_late_cap_ ? reserved_under_cap_ : stats.reserved_bytes.all().peak;
    outcome_.num_device_alloc = stats.num_device_alloc;
    outcome_.num_device_free = stats.num_device_free;
    outcome_.num_alloc_retries = stats.num_alloc_retries;
    outcome_.num_ooms = stats.num_ooms;
    outcome_.address_ties = allocator_.address_ties();
    outcome_.stats = stats;
  }

  const RequestStream& requests_;
  const WhatIf& question_;
  AddressSpace device_;
  CachingAllocator allocator_;
  std::vector<Block*> blocks_;
  int64_t most_reserved_ = 0;
  bool has_late_cap_ = false;
  int64_t reserved_under_cap_ = 0;
  Outcome outcome_;
};

}  // namespace

RequestStream requests_of(const Verification& verification) { return StreamBuilder(verification).run(); }

std::vector<uint32_t> events_of_curve(const RequestStream& requests, size_t points) {
  const size_t count = requests.kind.size();
  points = std::min(points, count);
  std::vector<uint32_t> events;
  for (size_t point = 0; point < points; ++point) {
    size_t i = count * point / points;
    const auto begins = [&](size_t at) {
      return requests.kind[at] == RequestKind::malloc && requests.begin[requests.id[at]] != kNoEvent;
    };
    while (i < count && !begins(i)) ++i;
    events.push_back(i < count ? requests.begin[requests.id[i]] : kNoEvent);
  }
  return events;
}

Outcome replay_what_if(const RequestStream& requests, const WhatIf& question) { return Run(requests, question).run(); }

OutcomeRange replay_main(const RequestStream& requests, WhatIf question) {
  question.policy = AddressPolicy::chunks;
  OutcomeRange range;
  range.main = replay_what_if(requests, question);
  range.peak_reserved_low = range.peak_reserved_high = range.main.peak_reserved;
  range.completed_everywhere = range.completed_somewhere = range.main.completed;
  range.looked_for = range.main.address_ties == 0 && !requests.from_mid_life;
  return range;
}

void look_for_range(const RequestStream& requests, WhatIf question, OutcomeRange& range) {
  if (range.looked_for) return;
  question.curve_points = 0;
  for (const OtherWay& way : kOtherWays) {
    question.policy = way.policy;
    question.start_order = way.start_order;
    const Outcome other = replay_what_if(requests, question);
    range.peak_reserved_low = std::min(range.peak_reserved_low, other.peak_reserved);
    range.peak_reserved_high = std::max(range.peak_reserved_high, other.peak_reserved);
    range.completed_everywhere = range.completed_everywhere && other.completed;
    range.completed_somewhere = range.completed_somewhere || other.completed;
  }
  range.looked_for = true;
}

OutcomeRange replay_range(const RequestStream& requests, const WhatIf& question) {
  OutcomeRange range = replay_main(requests, question);
  look_for_range(requests, question, range);
  return range;
}

}  // namespace oomscope
