// Which remedies help against which cause, which symptoms point to it, and which popular claims it refutes: the tables
// behind `why --explain`. Texts are in src/words/*/explain.json and claims.json, pages in docs/causes/ and
// docs/claims.md.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace oomscope {

struct CauseGuide {
  std::string_view id;                     // of a cause: findings[].id, docs/causes/ID.md, words "explain.ID.*"
  std::vector<std::string_view> remedies;  // best first
  std::vector<std::string_view> claims;    // popular advice that does not apply
};
[[nodiscard]] std::span<const CauseGuide> cause_guides();
[[nodiscard]] const CauseGuide* find_cause_guide(std::string_view id);

// What people see, and what is likely behind it, the likeliest first: words "symptom.KEY.seen" and ".check".
struct Symptom {
  std::string_view key;
  std::vector<std::string_view> causes;
};
[[nodiscard]] std::span<const Symptom> symptoms();

// The rows of docs/claims.md in their order: words "claim.ID.said" and ".true".
[[nodiscard]] std::span<const std::string_view> claim_ids();

}  // namespace oomscope
