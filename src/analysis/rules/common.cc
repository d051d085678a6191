#include "analysis/rules/common.h"

#include <algorithm>

#include "analysis/user_code.h"
#include "base/bytes_text.h"
#include "remedies/remedy.h"

namespace oomscope {
namespace {

std::optional<int64_t> figure(int64_t bytes) { return bytes > 0 ? std::optional<int64_t>(bytes) : std::nullopt; }

Circumstances circumstances_of(const RunFacts& facts, const Finding& finding) {
  Circumstances circumstances;
  circumstances.kind = facts.diagnosis->kind;
  circumstances.phase = finding.instant.phase;
  circumstances.expandable_segments = facts.diagnosis->verification->config.settings.expandable_segments;
  circumstances.figures.parameters = figure(facts.bytes_at(Category::parameter));
  circumstances.figures.gradients = figure(facts.bytes_at(Category::gradient));
  circumstances.figures.optimizer_state = figure(facts.bytes_at(Category::optimizer_state));
  circumstances.figures.activations = figure(facts.bytes_at(Category::activation));
  circumstances.figures.logits = figure(facts.bytes_at(Category::logits));
  if (facts.phase == Phase::optimizer_step) {
    circumstances.figures.step_temporaries = figure(facts.bytes_at(Category::temporary));
  }
  if (finding.id == "attention-matrix") circumstances.figures.attention_matrix = finding.bytes;
  return circumstances;
}

}  // namespace

Finding finding_of(const RunFacts& facts, std::string_view id) {
  Finding finding;
  finding.id = id;
  finding.instant =
      FindingInstant{.phase = facts.phase, .event = std::nullopt, .step = std::nullopt, .failed = facts.failed()};
  if (facts.instant().event != kNoEvent) finding.instant.event = facts.instant().event;
  if (!facts.structure.step_ends.empty() || facts.structure.trains) finding.instant.step = facts.step;
  return finding;
}

Phrase claim_of(const Finding& finding) { return Phrase{.key = "cause." + finding.id + ".claim"}; }

void add_site(Finding& finding, const RunFacts& facts, std::string_view key, StackId stack, int64_t bytes,
              int64_t blocks) {
  const std::string site = site_of(facts, stack);
  add_evidence(finding,
               Phrase{.key = "cause.evidence." + std::string(key)}
                   .with("bytes", format_bytes(bytes))
                   .with("blocks", format_count(blocks))
                   .with("site", site),
               std::nullopt, bytes, site);
}

void add_evidence(Finding& finding, Phrase text, std::optional<uint32_t> event, std::optional<int64_t> bytes,
                  std::string site) {
  finding.evidence.push_back(FindingEvidence{
      .text = std::move(text), .event = event, .site = std::move(site), .bytes = bytes, .log_line = std::nullopt});
}

void add_categories(Finding& finding, const RunFacts& run) {
  std::vector<size_t> order(kCategories);
  for (size_t i = 0; i < kCategories; ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return run.sums.at[a] > run.sums.at[b]; });
  for (size_t i = 0; i < 3 && run.sums.at[order[i]] > 0; ++i) {
    add_evidence(
        finding,
        Phrase{.key = "cause.evidence.category"}
            .with("category", {Phrase{.key = "category." + std::string(name_of(static_cast<Category>(order[i])))}})
            .with("bytes", format_bytes(run.sums.at[order[i]])),
        std::nullopt, run.sums.at[order[i]]);
  }
}

Phrase because(std::string_view key) { return Phrase{.key = "cause.because." + std::string(key)}; }

Phrase surer(std::string_view key) { return Phrase{.key = "cause.surer." + std::string(key)}; }

void add_changes(Finding& finding, const RunFacts& facts, std::initializer_list<std::string_view> remedies,
                 std::optional<int64_t> saved_bytes) {
  const Circumstances circumstances = circumstances_of(facts, finding);
  for (std::string_view id : remedies) {
    const Remedy* remedy = find_remedy(id);
    if (remedy == nullptr || !remedy->applies(circumstances)) continue;
    Change change = change_of(*remedy, circumstances);
    if (saved_bytes && *saved_bytes > 0 && finding.changes.empty()) {
      Predicted predicted;
      predicted.saved_bytes = saved_bytes;
      predicted.source = Phrase{.key = "cause.predicted.arithmetic"};
      change.predicted = std::move(predicted);
    }
    finding.changes.push_back(std::move(change));
  }
}

void free_after_pass(Finding& finding, const RunFacts& facts, const Growth& growth) {
  const std::vector<Pass>& passes = facts.structure.passes;
  for (uint32_t id : facts.live) {
    const uint32_t begin = facts.timeline().allocations[id].begin;
    if (begin == kNoEvent || !facts.is_left_by_pass(id)) continue;
    const uint32_t pass = facts.pass_at(begin);
    if (pass == kNoPass || passes[pass].caller != growth.caller || pass >= growth.last_pass + 1) continue;
    // What the program made of the results may be what the next pass works on.
    const uint32_t until = pass + (facts.traits(id).has(Trait::module_call) ? 1 : 2);
    if (until >= passes.size()) continue;
    finding.frees.push_back(EarlierFree{.allocation = id, .event = passes[until].begin});
  }
}

std::string call_site(const RunFacts& facts, StackId stack) {
  std::string text = call_text(*facts.snapshot, stack);
  return text.empty() ? site_of(facts, stack) : text;
}

std::string site_of(const RunFacts& facts, StackId stack) { return site_text(*facts.snapshot, stack); }

}  // namespace oomscope
