// The state of the allocator at one moment: what was live, by whom, and where the free space was pinned.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "replay/verify.h"
#include "types/confidence.h"
#include "types/phrase.h"

namespace oomscope {

enum class Moment : uint8_t { peak, end, oom, event };
enum class GroupBy : uint8_t { stack, category, size, stream, segment };

struct ShowTotals {
  int64_t events = 0;
  int64_t requested = 0;  // live or pending, as requested
  int64_t allocated = 0;  // live blocks; pending ones are in `active` alone
  int64_t active = 0;
  int64_t reserved = 0;
  int64_t peak_requested = 0;
  int64_t peak_allocated = 0;
  int64_t peak_reserved = 0;
};

struct ShowRow {
  std::string key;  // a site, a category, bytes, a stream or an address; empty: not known
  int64_t bytes = 0;
  int64_t count = 0;
  bool user_code = true;  // by stack: the site is the user's own line
  // By category alone:
  int64_t most_bytes = 0;  // the most of it that was ever live, and when
  uint32_t most_at = 0;
  std::string_view reason;  // of the largest part of it: reason.ID
  Confidence confidence = Confidence::low;
};

// How the run was read, for --by category.
struct ShownStructure {
  int64_t steps = 0;
  int64_t passes = 0;
  Confidence confidence = Confidence::low;
  int64_t requests = 0;
  int64_t frameless_requests = 0;
  int64_t frameless_placed = 0;
};

// A segment with the bytes that its live blocks keep from being used or given back.
struct SegmentHarm {
  uint64_t address = 0;
  int64_t size = 0;
  int64_t free_bytes = 0;  // pinned: the segment is not wholly free
  int64_t live_blocks = 0;
  int64_t smallest_live = 0;  // the smallest live block, and whose it is
  std::string smallest_site;
  std::string map;  // 32 cells: '#' full, '+' part, '.' free
  Phrase pool;      // "large", "small", "large, stream 3", "small, pool (0,1)"
};

struct Shown {
  Phrase at;           // "peak, event 4,711 of 71,803"
  uint32_t event = 0;  // kNoEvent: before the first one
  ShowTotals totals;
  std::vector<ShowRow> rows;                // by bytes, descending; sum to totals.active
  std::optional<ShownStructure> structure;  // by category
  std::vector<double> allocated_curve;      // up to 512 points, each the maximum of its share of events
  Caveats caveats;
};

// Errors: event-out-of-range, no-oom-event.
// The curve is for eyes: `with_curve` false leaves it empty.
[[nodiscard]] Result<Shown> show_state(const Verification& verification, Moment moment, int64_t event, GroupBy by,
                                       bool with_curve = true);
// Allocated bytes over all events, in at most `points` equal shares: each is the most of its own, so no peak is lost.
[[nodiscard]] std::vector<int64_t> allocated_curve(const Verification& verification, size_t points);
// All segments that are neither full nor wholly free, most pinned bytes first.
[[nodiscard]] std::vector<SegmentHarm> segment_map(const Verification& verification, uint32_t event);

}  // namespace oomscope
