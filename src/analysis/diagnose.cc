// The diagnosis: which instant, what kind, where the memory was.
#include <algorithm>

#include <fmt/format.h>

#include "analysis/user_code.h"
#include "analysis/why.h"
#include "base/bytes_text.h"
#include "types/context_size.h"

namespace oomscope {
namespace {

// With so much of the capacity live, the request included, the job is too large, whatever the pieces: settings may
// squeeze out the last per cent, but the next longer sequence fails again.
constexpr int64_t kNearlyFullPercent = 97;

// Blocks live at an instant, apart by what the bytes are.
struct LiveBytes {
  int64_t tensors = 0;  // as requested
  int64_t tails = 0;    // rounding and unsplit remainders
  int64_t pending = 0;  // freed, waiting for other streams
  int64_t free = 0;
};

LiveBytes live_bytes(const CachingAllocator& allocator) {
  LiveBytes live;
  for (const Segment* segment : allocator.segments()) {
    for (const Block* block = segment->first; block != nullptr; block = block->next) {
      if (!block->mapped) continue;
      if (block->allocated) {
        live.tensors += block->requested_size;
        live.tails += block->size - block->requested_size;
      } else if (block->is_idle()) {
        live.free += block->size;
      } else {
        live.pending += block->size;
      }
    }
  }
  return live;
}

class Diagnostician {
 public:
  Diagnostician(const Snapshot& snapshot, int32_t device, const WhyOptions& options)
      : snapshot_(snapshot), device_(device), options_(options) {}

  Result<Diagnosis> run() {
    VerifyOptions verify_options;
    verify_options.rules = options_.rules;
    out_.verification = verify(snapshot_, device_, verify_options);
    find_instant();
    if (options_.card_bytes && *options_.card_bytes < held_bytes_) {
      return Error{.code = "gpu-too-small",
                   .what = fmt::format("the recording shows at least {} on the card", format_bytes(held_bytes_)),
                   .where = "--gpu",
                   .hint = "--gpu is the whole card; for a smaller limit: oomscope replay SNAPSHOT --cap SIZE"};
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] const Trace& trace() const { return out_.verification->timeline.trace(); }

  void find_instant() {
    const std::optional<uint32_t> failed = failing_event(trace());
    Instant& instant = out_.instant;
    instant.failed = failed.has_value();
    ExactReplay& whole = *out_.verification->replay;
    // At a peak, what waits for other streams counts: nobody may use it.
    instant.event = failed ? *failed : whole.peak_requested().event;
    // The state right after that event: a second replay up to there.
    Timeline timeline = out_.verification->timeline;
    ExactReplay replay(timeline, out_.verification->config);
    replay.run(std::min<uint32_t>(instant.event + 1, static_cast<uint32_t>(trace().size_events())));
    CachingAllocator& allocator = replay.allocator();
    const Stats& stats = allocator.stats();
    instant.requested_bytes = stats.requested_bytes.all.current;
    instant.allocated_bytes = stats.allocated_bytes.all.current;
    instant.active_bytes = stats.active_bytes.all.current;
    instant.reserved_bytes = allocator.reserved_bytes();
    if (instant.event < trace().size_events()) instant.stack = trace().stack[instant.event];
    PoolId pool;
    StreamId stream{};
    if (failed) {
      instant.request_bytes = trace().size[*failed];
      instant.alloc_bytes =
          allocation_size(std::max<int64_t>(instant.request_bytes, 1), out_.verification->config.settings);
      instant.device_free_bytes = static_cast<int64_t>(trace().addr[*failed]);
      pool = replay.oom_pools().back();
      stream = trace().stream(*failed);
      find_capacity();
    } else if (out_.verification->limit) {
      out_.capacity = Capacity{out_.verification->limit->low_bytes, out_.verification->limit->high_bytes, true};
    }
    const LiveBytes live = live_bytes(allocator);
    out_.free_space = free_space_for(allocator, std::max<int64_t>(instant.request_bytes, kSmallSize + 1), stream, pool);
    if (failed) out_.free_space = free_space_for(allocator, instant.request_bytes, stream, pool);
    // Also what was freed but still waits for other streams is counted as live: no allocator may reuse it either.
    out_.floor_bytes = std::max(stats.requested_bytes.all.peak, instant.requested_bytes + instant.request_bytes);
    if (!failed) out_.floor_bytes = whole.peak_requested().bytes;
    decide_kind();
    fill_balance(live);
    fill_sentence(live);
    fill_trust();
  }

  void find_capacity() {
    const Instant& instant = out_.instant;
    const std::optional<LimitRange>& limit = out_.verification->limit;
    if (instant.device_free_bytes < instant.alloc_bytes) {
      const int64_t held = instant.reserved_bytes + instant.device_free_bytes;
      out_.capacity = Capacity{held, held, false};
    } else if (limit) {
      out_.capacity = Capacity{limit->low_bytes, limit->high_bytes, true};
    } else {
      out_.capacity = Capacity{instant.reserved_bytes, instant.reserved_bytes + instant.alloc_bytes - 1, true};
    }
    if (!options_.cap_bytes) return;
    // The user's figure counts where the recording allows it.
    if (out_.capacity.is_limit && *options_.cap_bytes >= out_.capacity.low_bytes &&
        *options_.cap_bytes <= out_.capacity.high_bytes) {
      out_.capacity.low_bytes = out_.capacity.high_bytes = *options_.cap_bytes;
      return;
    }
    out_.caveats.push_back(Caveat{
        .code = "cap-contradicted",
        .text = fmt::format("--cap {} is left aside: what was allowed and refused puts the limit at {} to {}; for "
                            "another limit see oomscope replay --cap",
                            format_bytes(*options_.cap_bytes), format_bytes(out_.capacity.low_bytes),
                            format_bytes(out_.capacity.high_bytes)),
        .source = CaveatSource::model});
  }

  void decide_kind() {
    const Instant& instant = out_.instant;
    out_.confidence = !out_.verification->exact() || trace().size_events() == 0                 ? Confidence::low
                      : out_.verification->timeline.uncertain_ghosts > 0 || !snapshot_.complete ? Confidence::medium
                                                                                                : Confidence::high;
    if (!instant.failed) {
      out_.kind = Kind::no_failure;
      return;
    }
    // More wanted than there is, or only badly placed? Where an inferred limit leaves both open, the likelier side of
    // its range decides, and the confidence says so.
    const int64_t wanted = instant.requested_bytes + instant.request_bytes;
    const Capacity& capacity = out_.capacity;
    out_.missing_bytes = std::max<int64_t>(wanted - capacity.high_bytes, 0);
    const bool open = wanted > capacity.low_bytes && wanted <= capacity.high_bytes;
    if (open && out_.confidence == Confidence::high) out_.confidence = Confidence::medium;
    const int64_t likely = capacity.low_bytes + (capacity.high_bytes - capacity.low_bytes) / 2;
    if (wanted <= likely / 100 * kNearlyFullPercent) {
      out_.kind = Kind::gpu_oom_fragmentation;
      return;
    }
    if (wanted <= capacity.high_bytes) out_.also.push_back(Kind::gpu_oom_fragmentation);
    out_.missing_at_most_bytes = std::max<int64_t>(wanted - capacity.low_bytes, 0);
    out_.kind = Kind::gpu_oom_capacity;
    if (out_.capacity.is_limit) return;
    if (options_.card_bytes) {
      const int64_t others = *options_.card_bytes - out_.capacity.high_bytes - kLargestContextBytes;
      if (others >= out_.missing_bytes) out_.kind = Kind::gpu_oom_other_process;
    } else if (instant.requested_bytes == 0) {
      out_.kind = Kind::gpu_oom_first_alloc_or_context;
    }
  }

  // --- the balance -----------------------------------------------------------------------------------------------

  void add_row(std::string name, int64_t bytes, std::string source, bool is_outside = false) {
    if (bytes == 0) return;
    out_.balance_total_bytes += bytes;
    out_.balance.push_back(BalanceRow{std::move(name), bytes, std::move(source), is_outside});
  }

  void fill_balance(const LiveBytes& live) {
    const FreeSpace& space = out_.free_space;
    const char* replay = trace().size_events() > 0 ? "replay" : "segments of the snapshot";
    add_row("live tensors", live.tensors, replay);
    add_row("rounding and unsplit tails", live.tails, replay);
    add_row("freed, waiting for other streams", live.pending, replay);
    if (out_.instant.failed) {
      add_row("free, in pieces too small", space.usable_bytes,
              fmt::format("{}: {} pieces, largest {}", replay, format_count(space.usable_pieces),
                          format_bytes(space.largest_usable_bytes)));
      add_row("free, but max_split_size forbids", space.oversize_bytes, replay);
      add_row(is_small(out_.instant.request_bytes) ? "free in the large pool" : "free in the small pool",
              space.other_class_bytes, replay);
      add_row("free for other streams only", space.other_stream_bytes, replay);
      add_row("free in private pools", space.private_pool_bytes, fmt::format("{} (graphs, MemPool)", replay));
      add_row("free on the card", out_.instant.device_free_bytes,
              out_.capacity.is_limit ? "oom event; beyond the limit" : "oom event", true);
    } else {
      add_row("cached and free", live.free, replay);
    }
    add_outside();
  }

  // What a snapshot cannot know: context, libraries, other processes.
  void add_outside() {
    if (!options_.card_bytes) {
      out_.balance.push_back(
          BalanceRow{"[outside the snapshot]", std::nullopt, "unknown: give the card, --gpu 24GiB", true});
      return;
    }
    held_bytes_ = out_.balance_total_bytes;
    const int64_t rest = *options_.card_bytes - held_bytes_;
    const bool failed = out_.instant.failed;
    add_row("[outside the snapshot]", rest,
            failed ? "--gpu less the rest: context, libraries, others" : "--gpu less the rest: context, others, free",
            true);
  }

  // --- words -----------------------------------------------------------------------------------------------------

  [[nodiscard]] std::string capacity_text() const {
    const Capacity& capacity = out_.capacity;
    if (!capacity.is_limit) {
      return fmt::format("this process could have {} of the card", format_bytes(capacity.high_bytes));
    }
    const bool known = capacity.low_bytes == capacity.high_bytes;
    const std::string low = format_bytes(capacity.low_bytes);
    const std::string high = format_bytes(capacity.high_bytes);
    return known || low == high ? fmt::format("its limit is {}", high)
                                : fmt::format("its limit is {} to {}", low, high);
  }

  [[nodiscard]] std::string limit_text() const {
    if (!out_.capacity.is_limit) return "";
    if (out_.capacity.low_bytes == out_.capacity.high_bytes)
      return fmt::format(" under its limit of {}", format_bytes(out_.capacity.high_bytes));
    return fmt::format(" under its limit of {} to {}", format_bytes(out_.capacity.low_bytes),
                       format_bytes(out_.capacity.high_bytes));
  }

  [[nodiscard]] std::string place_text() const {
    if (out_.instant.stack == StackId::none) return "";
    return fmt::format(" ({})", site_text(snapshot_, out_.instant.stack));
  }

  void fill_sentence(const LiveBytes& live) {
    const Instant& instant = out_.instant;
    if (!instant.failed) {
      fill_peak_sentence();
      return;
    }
    const std::string request = format_bytes(instant.request_bytes);
    switch (out_.kind) {
      case Kind::gpu_oom_fragmentation:
        out_.sentence = fmt::format("Fragmentation: {} failed{} with {} free{}: {}.", request, place_text(),
                                    format_bytes(live.free + unreserved()), limit_text(), blocker_text(live));
        break;
      case Kind::gpu_oom_first_alloc_or_context:
        out_.sentence = fmt::format(
            "The card was full before this process held anything: {} failed{} with {} free on the card and no tensor "
            "alive.",
            request, place_text(), format_bytes(instant.device_free_bytes));
        break;
      case Kind::gpu_oom_other_process:
        out_.sentence = fmt::format(
            "Other memory on the card: {} failed{}; {} were held outside this process's allocator, {} are missing.",
            request, place_text(), format_bytes(*options_.card_bytes - out_.capacity.high_bytes),
            format_bytes(out_.missing_bytes));
        break;
      default:
        if (out_.missing_at_most_bytes == 0) {
          out_.sentence = fmt::format("Nearly full: {} failed{} with {} live ({}) and {} free: {}.", request,
                                      place_text(), format_bytes(instant.requested_bytes), capacity_text(),
                                      format_bytes(live.free + unreserved()), blocker_text(live));
          break;
        }
        out_.sentence = fmt::format("Capacity: {} failed{} with {} live; {}: {} too little.", request, place_text(),
                                    format_bytes(instant.requested_bytes), capacity_text(), missing_text());
    }
  }

  [[nodiscard]] std::string missing_text() const {
    const std::string least = format_bytes(out_.missing_bytes);
    const std::string most = format_bytes(out_.missing_at_most_bytes);
    if (out_.missing_bytes == 0) return fmt::format("up to {}", most);
    return least == most ? least : fmt::format("{} to {}", least, most);
  }

  // What the allocator could still have taken from the driver.
  [[nodiscard]] int64_t unreserved() const {
    return std::max<int64_t>(out_.capacity.low_bytes - out_.instant.reserved_bytes, 0);
  }

  // Why no free piece served: the largest obstacle, by bytes.
  [[nodiscard]] std::string blocker_text(const LiveBytes& live) const {
    const FreeSpace& space = out_.free_space;
    const int64_t largest = std::max({space.usable_bytes, space.oversize_bytes, space.other_class_bytes,
                                      space.other_stream_bytes, space.private_pool_bytes, live.pending});
    if (largest == space.private_pool_bytes && largest > 0) {
      return fmt::format("{} of it in private pools (graphs, MemPool), closed to others", format_bytes(largest));
    }
    if (largest == space.other_stream_bytes && largest > 0) {
      return fmt::format("{} of it belong to other streams", format_bytes(largest));
    }
    if (largest == live.pending && largest > 0) {
      return fmt::format("{} more were freed but wait for other streams (record_stream)", format_bytes(largest));
    }
    if (largest == space.oversize_bytes && largest > 0) {
      return fmt::format("{} of it kept whole for larger requests by max_split_size_mb", format_bytes(largest));
    }
    if (largest == space.other_class_bytes && largest > 0) {
      return fmt::format("{} of it in the pool of the other size class", format_bytes(largest));
    }
    const std::string left =
        unreserved() > 0 ? fmt::format(", {} unreserved", format_bytes(unreserved())) : std::string();
    return fmt::format("largest piece {}{}", format_bytes(space.largest_usable_bytes), left);
  }

  void fill_peak_sentence() {
    const Instant& instant = out_.instant;
    const Peak& reserved = out_.verification->replay->peak_reserved();
    if (!snapshot_.complete) {
      out_.sentence = fmt::format("The file is cut or damaged behind event {}: whether anything failed is not in it.",
                                  format_count(static_cast<int64_t>(trace().size_events())));
      return;
    }
    if (trace().size_events() == 0) {
      out_.sentence = fmt::format("No history: the file shows only its last state, {} in tensors, {} reserved.",
                                  format_bytes(instant.allocated_bytes), format_bytes(instant.reserved_bytes));
      return;
    }
    out_.sentence = fmt::format(
        "Nothing failed. Peak: {} live at event {}{}, {} reserved at most; no allocator needs less than {}.",
        format_bytes(instant.active_bytes), format_count(instant.event), place_text(), format_bytes(reserved.bytes),
        format_bytes(out_.floor_bytes));
  }

  void fill_trust() {
    const Timeline& timeline = out_.verification->timeline;
    out_.caveats.insert(out_.caveats.end(), snapshot_.caveats.begin(), snapshot_.caveats.end());
    out_.caveats.insert(out_.caveats.end(), out_.verification->caveats.begin(), out_.verification->caveats.end());
    std::string start = "history from the start";
    if (trace().size_events() == 0) {
      start = "no history, final state only";
    } else if (timeline.starts_mid_life) {
      start = "history starts mid-life (rebuilt)";
    }
    int64_t with_stack = 0;
    int64_t allocs = 0;
    for (const Allocation& allocation : timeline.allocations) {
      if (allocation.begin == kNoEvent) continue;
      allocs += 1;
      with_stack += allocation.stack != StackId::none ? 1 : 0;
    }
    const std::string stacks = allocs == 0 ? "" : fmt::format(", stacks for {}", format_percent(with_stack, allocs));
    const std::string complete = snapshot_.complete ? "whole file" : "file cut or damaged";
    out_.trust = fmt::format("{}, {}{}", complete, start, stacks);
  }

  const Snapshot& snapshot_;
  int32_t device_;
  const WhyOptions& options_;
  int64_t held_bytes_ = 0;  // on the card as far as the recording tells
  Diagnosis out_;
};

}  // namespace

std::optional<uint32_t> failing_event(const Trace& trace) {
  for (size_t i = trace.size_events(); i-- > 0;) {
    if (trace.action[i] == Action::oom) return static_cast<uint32_t>(i);
    if (trace.action[i] == Action::alloc) return std::nullopt;  // it went on
  }
  return std::nullopt;
}

Result<Diagnosis> diagnose(const Snapshot& snapshot, int32_t device, const WhyOptions& options) {
  return Diagnostician(snapshot, device, options).run();
}

}  // namespace oomscope
