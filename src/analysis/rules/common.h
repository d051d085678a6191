// What the rules share: how a finding begins, and how its evidence and changes are said.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "analysis/rules/rule.h"
#include "analysis/run_facts.h"

namespace oomscope {

// A finding about the instant of the run: id and instant.
[[nodiscard]] Finding finding_of(const RunFacts& facts, std::string_view id);

// "cause.ID.claim", whose values the rule gives.
[[nodiscard]] Phrase claim_of(const Finding& finding);

// Evidence "cause.evidence.KEY" about blocks of one place: {bytes}, {blocks} and {site} are filled in.
void add_site(Finding& finding, const RunFacts& facts, std::string_view key, StackId stack, int64_t bytes,
              int64_t blocks);
// Evidence with other values.
void add_evidence(Finding& finding, Phrase text, std::optional<uint32_t> event = std::nullopt,
                  std::optional<int64_t> bytes = std::nullopt, std::string site = "");

// What holds the memory: the three largest categories at the instant.
void add_categories(Finding& finding, const RunFacts& facts);

// "cause.because.KEY" and "cause.surer.KEY".
[[nodiscard]] Phrase because(std::string_view key);
[[nodiscard]] Phrase surer(std::string_view key);

// What the cause's guide lists and what applies to the run, best first. `saved_bytes` is what the first would take off,
// where it is not for the catalogue to say. With `picks`: of the guide's only these, in this order.
void add_changes(Finding& finding, const RunFacts& facts, std::optional<int64_t> saved_bytes = std::nullopt,
                 std::initializer_list<std::string_view> picks = {});

// The instant of what is kept is where it was made: at `event`. Where the request failed goes to `failed_in`.
void place_at(Finding& finding, const RunFacts& facts, uint32_t event);

// What passes of one line left behind: claim, the pass that shows it, the largest of it. `each`: a pass's bytes.
struct GrowthFinding {
  Finding finding;
  int64_t each = 0;
};
[[nodiscard]] GrowthFinding growth_finding(const RunFacts& facts, const Growth& growth, std::string_view id);

// What the passes of a growth left, free as soon as the next pass begins.
void free_after_pass(Finding& finding, const RunFacts& facts, const Growth& growth);

// The user's line that called the model of this stack, else the user's line of the stack itself.
[[nodiscard]] std::string call_site(const RunFacts& facts, StackId stack);
[[nodiscard]] std::string site_of(const RunFacts& facts, StackId stack);

}  // namespace oomscope
