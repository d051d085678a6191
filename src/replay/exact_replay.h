// ExactReplay: a recording driven through the allocator, compared with it event by event.
//
// The engine decides where every block goes, what is split, merged, released and mapped. The recording answers only
// what nobody can know from it: where the driver put a segment, when another stream was done with a block, and where
// the program called empty_cache. See Note [Whose release is it] in exact_replay.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/zero_table.h"
#include "caching/allocator.h"
#include "model/timeline.h"

namespace oomscope {

// Block::tag of a replayed block: its allocation. 0 is a block that is nobody's.
[[nodiscard]] constexpr uint64_t tag_of(uint32_t allocation) { return uint64_t{allocation} + 1; }

// What a difference says about the limit that was assumed.
enum class LimitHint : uint8_t { none, too_low, too_high };

struct Difference {
  uint32_t event = 0;  // index into the trace; its size for the final state
  std::string what;    // a key of src/words/, "difference.", and its values
  Values values = {};
  LimitHint hint = LimitHint::none;
  uint64_t engine_address = 0;  // where the engine put or released something; 0: nowhere
  [[nodiscard]] bool is_same(const Difference& other) const {
    return event == other.event && what == other.what && engine_address == other.engine_address;
  }
};

struct ReplayConfig {
  RuleSet rules;
  AllocatorSettings settings;
  std::optional<int64_t> limit_bytes;       // the most the allocator may reserve
  std::optional<int64_t> range_bytes = {};  // of an expandable range; else what Timeline tells
  bool limit_is_told = false;               // what neither it nor the card explains is then a difference
  bool driver_refuses = false;              // refusals without a limit happened: the card itself was full
  // Requests in front of which completions have to be read the other way: see ExactReplay::guessed_polls.
  std::vector<uint32_t> reversed_polls = {};
};

// A call of empty_cache, or of a pool's destructor, that freed something. It happened before `event`.
struct ExplicitRelease {
  uint32_t event = 0;
  bool everything = true;       // else only the pools below
  std::vector<uint32_t> pools;  // indices into Timeline::pools of private pools that became freeable
};

struct Peak {
  int64_t bytes = 0;
  uint32_t event = kNoEvent;  // first event at which it was reached; kNoEvent: before the first one
};

struct ReplayCounts {
  int64_t alloc_total = 0;
  int64_t alloc_exact = 0;
  int64_t driver_total = 0;
  int64_t driver_exact = 0;
};

class RecordedDevice;

// Few events among many that a trace marks, met one after the other.
struct Marked {
  size_t next = 0;  // into the marks
  // Asked with `event` ascending.
  bool is(const std::vector<uint32_t>& marks, uint32_t event) {
    while (next < marks.size() && marks[next] < event) ++next;
    return next < marks.size() && marks[next] == event;
  }
};

class ExactReplay {
 public:
  // `timeline` must outlive the replay; sizes of its allocations are filled in as the engine finds them.
  ExactReplay(Timeline& timeline, const ReplayConfig& config) : ExactReplay(timeline, config, timeline.start, 0) {}
  // From the middle: `start` is the state before event `begin`, which must not lie within a call. Statistics, ages and
  // totals begin there.
  ExactReplay(Timeline& timeline, const ReplayConfig& config, const std::vector<StartSegment>& start, uint32_t begin);
  ~ExactReplay();

  // The replay up to `end` will surely take place: what it writes to is made present at once, which is cheaper.
  void touch_tables(uint32_t end);
  // Replays events [position(), end), all for kNoEvent. May be called again to go on. With `stop_at_difference` it
  // returns after the first one.
  void run(uint32_t end = kNoEvent, bool stop_at_difference = false);

  // This replay went on from where `before` stopped: what that one counted is counted with it.
  void append_to(const ExactReplay& before);

  // The replay was of a corrected trace: the recorded `address` of `event` is a difference.
  void blame(uint32_t event, uint64_t address);

  [[nodiscard]] uint32_t position() const { return position_; }
  [[nodiscard]] CachingAllocator& allocator() { return *allocator_; }
  [[nodiscard]] const ReplayCounts& counts() const { return counts_; }
  [[nodiscard]] const std::optional<Difference>& first_difference() const { return first_difference_; }
  [[nodiscard]] int64_t differences() const { return differences_; }
  [[nodiscard]] const std::vector<ExplicitRelease>& explicit_releases() const { return explicit_releases_; }
  // Of every oom entry so far, the pool that its request was for.
  [[nodiscard]] const std::vector<PoolId>& oom_pools() const { return oom_pools_; }
  // Requests so far for which it is not certain whether the completions in front of their own releases were polled
  // before those, or waited for by them; ascending.
  [[nodiscard]] const std::vector<uint32_t>& guessed_polls() const { return guessed_polls_; }
  [[nodiscard]] int64_t own_release_bursts() const { return own_release_bursts_; }
  // Explicit releases whose stack does not show an empty_cache call.
  [[nodiscard]] int64_t unexplained_releases() const { return unexplained_releases_; }
  // The start is one idle small segment: what a first tiny tensor leaves. It is replayed as a tensor of one float, so
  // that totals count from the beginning of the process.
  [[nodiscard]] bool from_the_beginning() const { return from_the_beginning_; }
  [[nodiscard]] const Peak& peak_allocated() const { return peak_allocated_; }
  [[nodiscard]] const Peak& peak_reserved() const { return peak_reserved_; }
  [[nodiscard]] const Peak& peak_requested() const { return peak_requested_; }

 private:
  friend class RecordedDevice;

  void adopt(const std::vector<StartSegment>& start);
  [[nodiscard]] bool starts_after_one_tensor() const;
  void make_first_tensor();
  void handle_alloc(uint32_t event);
  void handle_oom(uint32_t event);
  [[nodiscard]] bool nobody_refuses(uint32_t event) const;
  void handle_free(uint32_t event);
  void check_free_address(uint32_t event, const Block& block) {
    if (trace_.addr[event] != block.address) differ_at_free(event, block);
  }
  // What is rare, apart from what every event needs.
  [[gnu::noinline]] void note_own_segment_allocator(uint32_t event, PoolId pool);
  [[gnu::noinline]] Block* place(uint32_t event, StreamId stream, PoolId pool);
  [[gnu::noinline]] void differ_at_alloc(uint32_t event, Block* block, uint32_t segment_event);
  [[gnu::noinline]] void differ_at_free(uint32_t event, const Block& block);
  [[gnu::noinline]] void differ_at_second_free(uint32_t event);
  [[gnu::noinline]] void differ_at_stray_free(uint32_t event);
  void resolve_prefix_before_call(uint32_t event, bool is_request);
  [[nodiscard]] bool releases_are_own(uint32_t event) const;
  [[nodiscard]] bool stack_calls_empty_cache(StackId stack) const;
  void release_explicitly(uint32_t event);
  void complete_prefix(uint32_t until);
  [[nodiscard]] bool completions_were_polled(uint32_t event, uint32_t first_driver_event);
  void hold_in_recorded_order(uint32_t event);
  void finish_prefix(uint32_t event);
  void finish_end();
  [[nodiscard]] bool events_were_cut() const;
  void force_placement(uint32_t event, uint32_t id, Block* placed);
  // `what` is "difference.WHAT".
  void differ(uint32_t event, std::string_view what, Values values, LimitHint hint = LimitHint::none,
              uint64_t engine_address = 0);
  [[nodiscard]] PoolId pool_of_request(uint32_t event) const;

  Timeline& timeline_;
  const Trace& trace_;
  ReplayConfig config_;
  std::unique_ptr<RecordedDevice> device_;
  std::unique_ptr<CachingAllocator> allocator_;
  ZeroTable<Block*> blocks_;  // allocation -> block, nullptr while not live
  uint32_t position_ = 0;
  uint32_t prefix_begin_ = kNoEvent;  // events since here belong to the next call
  uint32_t completed_until_ = 0;      // completions before this event are done
  bool prefix_has_releases_ = false;
  bool prefix_has_completions_ = false;
  uint32_t last_alloc_ = kNoEvent;
  StringId empty_cache_name_ = StringId::none;
  // Looking for an address walks the segments: not for a recording in which everything differs, or is said to be
  // placed.
  static constexpr int64_t kMostPlacements = 10'000;
  int64_t placements_ = 0;
  Marked next_forced_;
  Marked next_restored_;
  bool in_unexplained_release_ = false;
  uint64_t last_placed_ = 0;  // by the call whose prefix is being finished
  bool from_the_beginning_ = false;

  ReplayCounts counts_;
  std::optional<Difference> first_difference_;
  int64_t differences_ = 0;
  std::vector<ExplicitRelease> explicit_releases_;
  std::vector<PoolId> oom_pools_;
  std::vector<uint32_t> guessed_polls_;
  int64_t own_release_bursts_ = 0;
  int64_t unexplained_releases_ = 0;
  Peak peak_allocated_;
  Peak peak_reserved_;
  Peak peak_requested_;
};

}  // namespace oomscope
