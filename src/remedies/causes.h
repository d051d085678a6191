// Which remedies help against which cause, which symptoms point to it, and which popular claims it refutes: the tables
// behind `why --explain`. Texts are in src/words/*/explain.json and claims.json, pages in docs/causes/ and
// docs/claims.md.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>

#include "types/phase.h"

namespace oomscope {

// A list of ids in a constant table.
class Ids {
 public:
  constexpr Ids(std::initializer_list<std::string_view> ids) : count_(ids.size()) {
    for (size_t i = 0; i < count_; ++i) ids_[i] = ids.begin()[i];
  }
  [[nodiscard]] constexpr const std::string_view* begin() const { return ids_.data(); }
  [[nodiscard]] constexpr const std::string_view* end() const { return ids_.data() + count_; }
  [[nodiscard]] constexpr bool empty() const { return count_ == 0; }
  [[nodiscard]] constexpr size_t size() const { return count_; }

 private:
  std::array<std::string_view, 16> ids_;  // one more does not compile
  size_t count_;
};

struct CauseGuide {
  std::string_view id;    // of a cause: findings[].id, docs/causes/ID.md, words "explain.ID.*"
  Ids remedies;           // best first
  Ids claims;             // popular advice that does not apply
  bool by_phase = false;  // and whatever lowers the memory of the phase in which it failed
};
[[nodiscard]] std::span<const CauseGuide> cause_guides();
[[nodiscard]] const CauseGuide* find_cause_guide(std::string_view id);

// What lowers the memory that is needed at once, by what the program was doing; best first, docs/phases.md. Not among
// them: to empty the cache. A request that fails has had that done already, so it helps others alone.
[[nodiscard]] Ids remedies_of_phase(Phase phase);
// What helps besides where the frames name attention, or the loss of a language model.
[[nodiscard]] Ids remedies_of_frames();

// Whether the guide has the remedy: for itself, for a phase or for frames.
[[nodiscard]] bool helps_against(std::string_view remedy, const CauseGuide& guide);

// What people see, and what is likely behind it, the likeliest first: words "symptom.KEY.seen" and ".check".
struct Symptom {
  std::string_view key;
  Ids causes;
};
[[nodiscard]] std::span<const Symptom> symptoms();

// The rows of docs/claims.md in their order: words "claim.ID.said" and ".true".
[[nodiscard]] std::span<const std::string_view> claim_ids();

}  // namespace oomscope
