// What would have happened: a recording's requests under other settings, another limit, another torch.
//
// The requests of a program do not depend on where its blocks lie. So they are taken from the exact replay once
// (RequestStream) and given to as many allocators as there are questions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/caveat.h"
#include "caching/allocator.h"
#include "replay/address_space.h"
#include "replay/verify.h"
#include "types/finding.h"

namespace oomscope {

enum class RequestKind : uint8_t {
  malloc,       // id: allocation
  free,         // id: allocation; returned at once
  free_held,    // id: allocation; other streams still use it
  complete,     // id: allocation; they are done
  empty_cache,  // id: unused; the program called it here
  empty_pool,   // id: pool index; its owner released it here
  failed,       // id: index into failures; the recording ran out here
};

struct RequestStream {
  std::vector<RequestKind> kind;
  std::vector<uint32_t> id;
  std::vector<int64_t> size;    // by allocation: requested bytes
  std::vector<uint32_t> place;  // by allocation: index into places
  std::vector<uint32_t> begin;  // by allocation: its alloc event; kNoEvent for blocks of the start
  struct Place {
    StreamId stream;
    PoolId pool;
    bool needs_it = false;  // who asks cannot do without: no library's scratch
  };
  struct Failure {
    uint32_t event;  // the oom entry
    int64_t size;    // rounded
    Place place;
    bool last;  // no request follows: the program died of it
  };
  std::vector<Place> places;  // distinct (stream, pool)
  std::vector<PoolId> pools;
  std::vector<Failure> failures;
  AddressHints address_hints;
  bool from_mid_life = false;  // the blocks of the start are allocated anew first
};

// The requests of a recording whose replay has run to its end.
[[nodiscard]] RequestStream requests_of(const Verification& verification);

// What a change to the program would make of its requests.
struct RequestEdits {
  struct Added {
    uint32_t event = 0;  // made before it
    int64_t size = 0;
  };
  std::vector<RequestEdit> blocks;            // in any order, one a block
  std::vector<Added> added;                   // further requests, kept to the end; of the default pool
  std::optional<int64_t> last_failure_bytes;  // of the last request that failed; 0: it is not made
  bool shares_pools = false;                  // private pools' blocks come from the common pool
};
[[nodiscard]] RequestStream with_edits(const RequestStream& requests, RequestEdits edits);

// What a cap stands for. A limit (set_per_process_memory_fraction) is tested by the allocator, which collects garbage
// in view of it; a full card refuses the call itself, and garbage is collected as little as without a cap.
enum class CapKind : uint8_t { limit, card };

// In which order the blocks of the start are allocated anew, where a recording begins in mid-life: nothing tells which
// was the program's.
enum class StartOrder : uint8_t { by_address, backwards, largest_first };

struct WhatIf {
  RuleSet rules;
  AllocatorSettings settings;
  std::optional<int64_t> cap_bytes;
  CapKind cap_kind = CapKind::limit;
  std::optional<int64_t> card_bytes =
      std::nullopt;  // cudaMemGetInfo's total, if known: for settings that name a share of it
  AddressPolicy policy = AddressPolicy::chunks;
  StartOrder start_order = StartOrder::by_address;
  // The cap, then a limit, holds from there on, and the peak of reserved bytes is counted from there on.
  uint32_t cap_from_event = 0;
  size_t curve_points = 0;  // of Outcome::reserved_curve
};

struct Outcome {
  bool completed = false;
  size_t stopped_at_request = 0;         // which of RequestStream::kind was refused, if not completed
  uint32_t stopped_at_event = kNoEvent;  // its alloc or oom event; kNoEvent: a block of the start
  int64_t refused_bytes = 0;             // its size
  int64_t peak_requested = 0;
  int64_t peak_allocated = 0;
  int64_t peak_reserved = 0;
  int64_t num_device_alloc = 0;
  int64_t num_device_free = 0;
  int64_t num_alloc_retries = 0;
  int64_t num_ooms = 0;
  int64_t library_tries = 0;         // refused requests that a library gave up at once; skipped
  int64_t address_ties = 0;          // 0: the same on every driver
  bool impossible = false;           // this torch would trip one of its own assertions
  std::vector<bool> failure_served;  // by RequestStream::failures: did the request that failed succeed
  Stats stats;
  std::vector<int64_t> reserved_curve;  // each point the most of its share of requests; shorter where it stopped
};

// The event by which each share of a curve begins.
[[nodiscard]] std::vector<uint32_t> events_of_curve(const RequestStream& requests, size_t points);

[[nodiscard]] Outcome replay_what_if(const RequestStream& requests, const WhatIf& question);

// Does what failed last in the recording fail in `as_recorded`, a replay under its own settings and limit? Where it
// starts in mid-life the request may be served, since the blocks of the start lie otherwise when they are allocated
// anew. Then what other settings do from there proves nothing.
[[nodiscard]] inline bool fails_as_recorded(const RequestStream& requests, const Outcome& as_recorded) {
  return !requests.from_mid_life || requests.failures.empty() || !as_recorded.failure_served.back();
}

// The same under all address policies, if any choice hung on addresses, and under all orders of the start, if there is
// one: `main` is AddressPolicy::chunks and StartOrder::by_address.
struct OutcomeRange {
  Outcome main;
  bool looked_for = true;  // false: it may differ under the others, which were not replayed
  int64_t peak_reserved_low = 0;
  int64_t peak_reserved_high = 0;
  bool completed_everywhere = false;
  bool completed_somewhere = false;
  // Empty where they were not looked for.
  [[nodiscard]] std::optional<int64_t> reserved_low() const {
    return looked_for ? std::optional(peak_reserved_low) : std::nullopt;
  }
  [[nodiscard]] std::optional<int64_t> reserved_high() const {
    return looked_for ? std::optional(peak_reserved_high) : std::nullopt;
  }
};
[[nodiscard]] OutcomeRange replay_range(const RequestStream& requests, const WhatIf& question);

// In two parts: the main outcome alone, which may be of a narrower range than the truth, and the others.
[[nodiscard]] OutcomeRange replay_main(const RequestStream& requests, WhatIf question);
void look_for_range(const RequestStream& requests, WhatIf question, OutcomeRange& range);

// The policies and orders beside the main ones, each with another.
struct OtherWay {
  AddressPolicy policy;
  StartOrder start_order;
};
inline constexpr std::array<OtherWay, 2> kOtherWays = {
    {{AddressPolicy::down, StartOrder::backwards}, {AddressPolicy::up, StartOrder::largest_first}}};

}  // namespace oomscope
