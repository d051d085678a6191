// The diagnosis: which instant, what kind, where the memory was.
#include <algorithm>

#include <fmt/format.h>

#include "analysis/user_code.h"
#include "analysis/why.h"
#include "base/bytes_text.h"
#include "model/fatal_oom.h"
#include "model/stack_traits.h"
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
  int64_t pending_requested = 0;
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
        live.pending_requested += block->requested_size;
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
                   .what = "error.gpu-too-small",
                   .where = "--gpu",
                   .hint = "error.gpu-too-small.hint",
                   .values = {{"bytes", format_bytes(held_bytes_)}}};
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] const Trace& trace() const { return out_.verification->timeline.trace(); }

  // The request that the program died of, else the peak.
  void find_instant() {
    const std::optional<uint32_t> failed = fatal_oom(trace());
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
    instant.requested_bytes = stats.requested_bytes.all().current;
    instant.allocated_bytes = stats.allocated_bytes.all().current;
    instant.active_bytes = stats.active_bytes.all().current;
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
    out_.pinned = pinned_space(allocator);
    for (uint64_t tag : out_.pinned.tags) {
      if (tag != 0) out_.pinning.push_back(static_cast<uint32_t>(tag - 1));
    }
    out_.free_space = free_space_for(allocator, std::max<int64_t>(instant.request_bytes, kSmallSize + 1), stream, pool);
    if (failed) out_.free_space = free_space_for(allocator, instant.request_bytes, stream, pool);
    // Also what was freed but still waits for other streams is counted as live: no allocator may reuse it meanwhile.
    out_.floor_bytes = std::max(stats.requested_bytes.all().peak, instant.requested_bytes + instant.request_bytes);
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
      // What is reserved was allowed, unless the limit was lowered since.
      const bool allows = out_.verification->exact() && instant.reserved_bytes <= limit->high_bytes;
      const int64_t least = allows ? std::max(limit->low_bytes, instant.reserved_bytes) : limit->low_bytes;
      out_.capacity = Capacity{least, limit->high_bytes, true};
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
    out_.caveats.push_back(Caveat{.code = "cap-contradicted",
                                  .values = {{"cap", format_bytes(*options_.cap_bytes)},
                                             {"low", format_bytes(out_.capacity.low_bytes)},
                                             {"high", format_bytes(out_.capacity.high_bytes)}},
                                  .source = CaveatSource::model});
  }

  void decide_kind() {
    const Instant& instant = out_.instant;
    const Verification& verification = *out_.verification;
    const bool tells_little = trace().size_events() == 0 || shows_only_the_end();
    // Exact, but with pools, or sizes of the start, that nothing names.
    const bool is_inferred = verification.timeline.uncertain_ghosts > 0 ||
                             std::any_of(verification.caveats.begin(), verification.caveats.end(),
                                         [](const Caveat& caveat) { return caveat.code == "pools-inferred"; });
    out_.confidence = !verification.exact() || tells_little ? Confidence::low
                      : is_inferred || !snapshot_.complete  ? Confidence::medium
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

  void add_row(std::string_view key, int64_t bytes, Phrase source, bool is_outside = false) {
    if (bytes == 0) return;
    out_.balance_total_bytes += bytes;
    out_.balance.push_back(BalanceRow{balance_phrase(key), bytes, std::move(source), is_outside});
  }

  static Phrase balance_phrase(std::string_view key) { return Phrase{.key = "balance." + std::string(key)}; }

  void fill_balance(const LiveBytes& live) {
    const FreeSpace& space = out_.free_space;
    const Phrase replay = balance_phrase(trace().size_events() > 0 ? "from-replay" : "from-segments");
    add_row("live-tensors", live.tensors, replay);
    add_row("tails", live.tails, replay);
    add_row("pending", live.pending, replay);
    if (out_.instant.failed) {
      add_row("too-small", space.usable_bytes,
              balance_phrase("from-pieces")
                  .with("source", replay)
                  .with("pieces", format_count(space.usable_pieces))
                  .with("largest", format_bytes(space.largest_usable_bytes)));
      add_row("oversize", space.oversize_bytes, replay);
      add_row(is_small(out_.instant.request_bytes) ? "free-in-large-pool" : "free-in-small-pool",
              space.other_class_bytes, replay);
      add_row("other-streams", space.other_stream_bytes, replay);
      add_row("private-pools", space.private_pool_bytes, balance_phrase("from-pools").with("source", replay));
      add_row("default-pool", space.default_pool_bytes, replay);
      add_row("free-on-card", out_.instant.device_free_bytes,
              balance_phrase(out_.capacity.is_limit ? "from-oom-beyond-limit" : "from-oom"), true);
    } else {
      add_row("cached", live.free, replay);
    }
    add_outside();
  }

  // What a snapshot cannot know: context, libraries, other processes.
  void add_outside() {
    if (!options_.card_bytes) {
      // What the card had free at the failure tells how large it is at least.
      const Phrase source =
          out_.instant.failed
              ? balance_phrase("from-nowhere-of-at-least").with("bytes", format_bytes(out_.balance_total_bytes))
              : balance_phrase("from-nowhere");
      out_.balance.push_back(BalanceRow{balance_phrase("outside"), std::nullopt, source, true});
      return;
    }
    held_bytes_ = out_.balance_total_bytes;
    add_processes();
    add_row("outside", *options_.card_bytes - out_.balance_total_bytes,
            balance_phrase(out_.instant.failed ? "from-card-at-failure" : "from-card"), true);
  }

  // What NVML said of processes, where it leaves room: it was asked a moment after the failure.
  void add_processes() {
    if (!options_.own_bytes || !options_.others_bytes) return;
    const int64_t context = *options_.own_bytes - out_.instant.reserved_bytes;
    const int64_t outside = *options_.card_bytes - held_bytes_;
    if (context < 0 || *options_.others_bytes > outside - context) return;
    add_row("context", context, balance_phrase("from-nvml"), true);
    add_row("other-processes", *options_.others_bytes, balance_phrase("from-nvml"), true);
  }

  // --- words -----------------------------------------------------------------------------------------------------

  static Phrase why_phrase(std::string_view key) { return Phrase{.key = "why." + std::string(key)}; }

  [[nodiscard]] Phrase capacity_phrase() const {
    const Capacity& capacity = out_.capacity;
    const std::string low = format_bytes(capacity.low_bytes);
    const std::string high = format_bytes(capacity.high_bytes);
    if (!capacity.is_limit) return why_phrase("capacity-of-card").with("high", high);
    if (low == high) return why_phrase("capacity-limit").with("high", high);
    return why_phrase("capacity-limit-range").with("low", low).with("high", high);
  }

  [[nodiscard]] Phrase limit_phrase() const {
    if (!out_.capacity.is_limit) return {};
    const std::string high = format_bytes(out_.capacity.high_bytes);
    const std::string low = format_bytes(out_.capacity.low_bytes);
    if (low == high) return why_phrase("under-limit").with("high", high);
    return why_phrase("under-limit-range").with("low", low).with("high", high);
  }

  [[nodiscard]] Phrase place_phrase() const {
    if (out_.instant.stack == StackId::none) return {};
    std::string site = site_text(snapshot_, out_.instant.stack);
    if (site.starts_with('(') && site.ends_with(')')) site = site.substr(1, site.size() - 2);
    return why_phrase("place").with("site", std::move(site));
  }

  // "why.KEY" with what every sentence about a failed request names.
  [[nodiscard]] Phrase failed_phrase(std::string_view key) const {
    return why_phrase(key).with("request", format_bytes(out_.instant.request_bytes)).with("place", place_phrase());
  }

  void fill_sentence(const LiveBytes& live) {
    const Instant& instant = out_.instant;
    if (!instant.failed) {
      fill_peak_sentence(live);
      return;
    }
    const Phrase free = range_phrase(live.free + unreserved(), live.free + unreserved_at_most());
    const std::string requested = format_bytes(instant.requested_bytes);
    switch (out_.kind) {
      case Kind::gpu_oom_fragmentation:
        out_.sentence = failed_phrase("fragmentation")
                            .with("free", free)
                            .with("limit", limit_phrase())
                            .with("blocker", blocker_phrase(live));
        break;
      case Kind::gpu_oom_first_alloc_or_context:
        out_.sentence = failed_phrase("full-before-start").with("free", format_bytes(instant.device_free_bytes));
        break;
      case Kind::gpu_oom_other_process:
        out_.sentence = failed_phrase("other-memory")
                            .with("others", format_bytes(*options_.card_bytes - out_.capacity.high_bytes))
                            .with("missing", format_bytes(out_.missing_bytes));
        break;
      default:
        if (out_.missing_at_most_bytes == 0) {
          out_.sentence = failed_phrase("nearly-full")
                              .with("live", requested)
                              .with("capacity", capacity_phrase())
                              .with("free", free)
                              .with("blocker", blocker_phrase(live));
          break;
        }
        out_.sentence = failed_phrase("capacity")
                            .with("live", requested)
                            .with("capacity", capacity_phrase())
                            .with("missing", missing_phrase());
    }
  }

  [[nodiscard]] Phrase missing_phrase() const {
    const std::string least = format_bytes(out_.missing_bytes);
    const std::string most = format_bytes(out_.missing_at_most_bytes);
    if (out_.missing_bytes == 0) return why_phrase("missing-up-to").with("most", most);
    if (least == most) return why_phrase("missing").with("most", most);
    return why_phrase("missing-range").with("least", least).with("most", most);
  }

  // What the allocator could still have taken from the driver.
  [[nodiscard]] int64_t unreserved() const {
    return std::max<int64_t>(out_.capacity.low_bytes - out_.instant.reserved_bytes, 0);
  }

  [[nodiscard]] int64_t unreserved_at_most() const {
    return std::max<int64_t>(out_.capacity.high_bytes - out_.instant.reserved_bytes, 0);
  }

  [[nodiscard]] static Phrase range_phrase(int64_t low_bytes, int64_t high_bytes) {
    const std::string low = format_bytes(low_bytes);
    const std::string high = format_bytes(high_bytes);
    if (low == high) return why_phrase("bytes").with("bytes", low);
    return why_phrase("bytes-range").with("low", low).with("high", high);
  }

  // Why no free piece served: the largest obstacle, by bytes.
  [[nodiscard]] Phrase blocker_phrase(const LiveBytes& live) const {
    const FreeSpace& space = out_.free_space;
    const std::pair<int64_t, const char*> obstacles[] = {
        {space.private_pool_bytes, "blocked-by-pools"},   {space.default_pool_bytes, "blocked-by-default-pool"},
        {space.other_stream_bytes, "blocked-by-streams"}, {live.pending, "blocked-by-pending"},
        {space.oversize_bytes, "blocked-by-max-split"},   {space.other_class_bytes, "blocked-by-size-class"}};
    int64_t largest = space.usable_bytes;
    for (const auto& [bytes, key] : obstacles) largest = std::max(largest, bytes);
    for (const auto& [bytes, key] : obstacles) {
      if (bytes == largest && bytes > 0) return why_phrase(key).with("bytes", format_bytes(bytes));
    }
    const std::string piece = format_bytes(space.largest_usable_bytes);
    if (unreserved_at_most() == 0) return why_phrase("largest-piece").with("largest", piece);
    // The most is what was refused, less a byte: said as it is, it would look like enough.
    const bool is_known = unreserved() == unreserved_at_most();
    const std::string most = format_bytes(unreserved_at_most() + (is_known ? 0 : 1));
    return why_phrase("largest-piece-unreserved")
        .with("largest", piece)
        .with("unreserved", why_phrase(is_known ? "bytes" : "bytes-below").with("bytes", most));
  }

  void fill_peak_sentence(const LiveBytes& live) {
    const Instant& instant = out_.instant;
    if (!snapshot_.complete && trace().size_events() == 0) {
      out_.sentence = why_phrase("cut-before-events");
      return;
    }
    if (!snapshot_.complete) {
      out_.sentence = why_phrase(out_.verification->refused_requests == 0 ? "cut-file" : "cut-file-survived")
                          .with("events", format_count(static_cast<int64_t>(trace().size_events())))
                          .with("outcome", outcome_phrase());
      return;
    }
    if (trace().size_events() == 0) {
      out_.sentence = why_phrase("no-history")
                          .with("allocated", format_bytes(instant.allocated_bytes))
                          .with("reserved", format_bytes(instant.reserved_bytes));
      return;
    }
    const Peak& reserved = out_.verification->replay->peak_reserved();
    out_.sentence =
        why_phrase("peak")
            .with("outcome", outcome_phrase())
            .with("live", format_mib(out_.floor_bytes))
            .with("when", when_phrase(instant.event))
            .with("place", place_phrase())
            .with("need", need_phrase(live))
            .with("reserved", format_mib(reserved.bytes))
            .with("reserved_when", reserved.event == instant.event ? why_phrase("then") : when_phrase(reserved.event));
  }

  // What only waits for other streams is needed by the program's order, not by its tensors.
  static Phrase need_phrase(const LiveBytes& live) {
    if (live.pending == 0) return why_phrase("no-less");
    return why_phrase("waits-for-streams").with("pending", format_mib(live.pending_requested));
  }

  static Phrase when_phrase(uint32_t event) {
    return event == kNoEvent ? why_phrase("before-first-event")
                             : why_phrase("at-event").with("event", format_count(event));
  }

  // Less is recorded than what was live when the recording began: it tells little of what came before.
  [[nodiscard]] bool shows_only_the_end() const {
    const Timeline& timeline = out_.verification->timeline;
    const auto at_start = std::count_if(timeline.allocations.begin(), timeline.allocations.end(),
                                        [](const Allocation& each) { return each.begin == kNoEvent; });
    return timeline.starts_mid_life && static_cast<int64_t>(trace().size_events()) < at_start;
  }

  // Requests that failed are not to be passed over because the program went on without them.
  [[nodiscard]] Phrase outcome_phrase() const {
    const Trace& events = trace();
    const auto last = std::find(events.action.rbegin(), events.action.rend(), Action::oom);
    if (last == events.action.rend()) return why_phrase(shows_only_the_end() ? "short-history" : "nothing-failed");
    const size_t event = events.size_events() - 1 - static_cast<size_t>(last - events.action.rbegin());
    return why_phrase("survived")
        .with("count", format_count(out_.verification->refused_requests))
        .with("request", format_bytes(events.size[event]))
        .with("event", format_count(static_cast<int64_t>(event)));
  }

  void fill_trust() {
    const Timeline& timeline = out_.verification->timeline;
    out_.caveats.insert(out_.caveats.end(), snapshot_.caveats.begin(), snapshot_.caveats.end());
    out_.caveats.insert(out_.caveats.end(), out_.verification->caveats.begin(), out_.verification->caveats.end());
    const char* start = trace().size_events() == 0 ? "trust-no-history"
                        : timeline.starts_mid_life ? "trust-mid-life"
                                                   : "trust-from-start";
    // A stack of C++ frames alone names no line of the program.
    const std::vector<StackTraits> stacks_seen = stack_traits(snapshot_);
    int64_t with_stack = 0;
    int64_t allocs = 0;
    for (const Allocation& allocation : timeline.allocations) {
      if (allocation.begin == kNoEvent) continue;
      allocs += 1;
      with_stack += stacks_seen[static_cast<size_t>(allocation.stack)].has(Trait::python) ? 1 : 0;
    }
    Phrase stacks;
    if (allocs > 0) stacks = why_phrase("trust-stacks").with("percent", format_percent(with_stack, allocs));
    out_.trust = why_phrase("trust")
                     .with("file", why_phrase(snapshot_.complete ? "trust-whole" : "trust-cut"))
                     .with("start", why_phrase(start))
                     .with("stacks", std::move(stacks));
  }

  const Snapshot& snapshot_;
  int32_t device_;
  const WhyOptions& options_;
  int64_t held_bytes_ = 0;  // on the card as far as the recording tells
  Diagnosis out_;
};

}  // namespace

Result<Diagnosis> diagnose(const Snapshot& snapshot, int32_t device, const WhyOptions& options) {
  return Diagnostician(snapshot, device, options).run();
}

}  // namespace oomscope
