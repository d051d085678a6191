// Finding: one cause with its evidence and its change, from a snapshot, a log or both. What rules make and reports
// show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "types/confidence.h"
#include "types/phase.h"
#include "types/phrase.h"

namespace oomscope {

// When it happened. `event` counts from the start of the recording, `step` from 1 as far as steps are known.
struct FindingInstant {
  Phase phase = Phase::unknown;
  std::optional<uint32_t> event;
  std::optional<int> step;
  bool failed = false;                  // a request failed there; else it is the peak, or where the growth was seen
  bool counted_from_recording = false;  // `step`: the program had begun before, so its own count is another
};

// One thing that speaks for the finding.
struct FindingEvidence {
  Phrase text;
  std::optional<uint32_t> event;
  std::string site;  // function and file:line of the user's own code, or empty
  std::optional<int64_t> bytes;
  std::optional<int64_t> log_line;  // from 1
};

// What a change would bring, and from where that is known.
struct Predicted {
  std::optional<bool> completed;  // under the limit of the failure, by replay
  std::optional<int64_t> peak_reserved;
  std::optional<int64_t> peak_reserved_low;
  std::optional<int64_t> peak_reserved_high;
  std::optional<int64_t> saved_bytes;  // at the instant, by arithmetic
  Phrase premise = {};                 // "their memory is given back first": more than the remedy names; or empty
  Phrase source;                       // "replay of 71,803 events", "arithmetic on the message's figures"
};

// A remedy of src/remedies/ as it applies here.
struct Change {
  std::string remedy;                 // its id there
  Phrase text;                        // what to do, with this case's names and numbers
  std::vector<std::string> commands;  // lines to paste; empty: nothing to paste
  std::optional<Predicted> predicted;
};

// What a change to the program would have made of one block.
struct RequestEdit {
  static constexpr uint32_t kFreedAsRecorded = 0xffffffff;
  static constexpr int64_t kSizeAsRecorded = -1;
  uint32_t allocation = 0;
  uint32_t free_at = kFreedAsRecorded;  // event from which it is free; up to its own birth: it is never asked for
  int64_t size = kSizeAsRecorded;       // bytes that are asked for
};

struct Finding {
  std::string id;  // of the cause: "graph-kept"; src/analysis/rules/table.cc lists them
  Phrase claim;    // one sentence
  std::optional<int64_t> bytes;
  Confidence confidence = Confidence::low;
  Phrase because;          // why so sure and no surer
  Phrase surer;            // what would raise the certainty, or empty
  FindingInstant instant;  // where the cause is: where what is kept was made, else where the request failed
  std::optional<FindingInstant> failed_in;  // where the request failed, if it is elsewhere
  std::vector<FindingEvidence> evidence;
  std::vector<Change> changes;      // best first
  bool drops_request = false;       // without the cause, the request that failed would not be made
  std::vector<RequestEdit> edits;   // what the blocks that the finding is about would be without the cause
  std::vector<std::string> claims;  // ids of docs/claims.md: popular advice that does not apply here
};

// True of a failure, or of a recording without one, whatever else is found: it explains nothing by itself.
[[nodiscard]] inline bool is_plain_cause(std::string_view id) {
  return id == "capacity" || id == "fragmentation" || id == "other-memory-on-card" || id == "card-full-before-start" ||
         id == "none";
}

}  // namespace oomscope
