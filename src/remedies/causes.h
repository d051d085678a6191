// Which remedies help against which cause, which symptoms point to it, and which popular claims it refutes: the tables
// behind `why --explain`. Texts are in src/words/*/explain.json and claims.json, pages in docs/causes/ and
// docs/claims.md.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>

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
  std::string_view id;  // of a cause: findings[].id, docs/causes/ID.md, words "explain.ID.*"
  Ids remedies;         // best first
  Ids claims;           // popular advice that does not apply
};
[[nodiscard]] std::span<const CauseGuide> cause_guides();
[[nodiscard]] const CauseGuide* find_cause_guide(std::string_view id);

// What people see, and what is likely behind it, the likeliest first: words "symptom.KEY.seen" and ".check".
struct Symptom {
  std::string_view key;
  Ids causes;
};
[[nodiscard]] std::span<const Symptom> symptoms();

// The rows of docs/claims.md in their order: words "claim.ID.said" and ".true".
[[nodiscard]] std::span<const std::string_view> claim_ids();

}  // namespace oomscope
