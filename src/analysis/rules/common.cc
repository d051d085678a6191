#include "analysis/rules/common.h"

#include <algorithm>
#include <span>

#include "analysis/framework.h"
#include "analysis/user_code.h"
#include "base/bytes_text.h"
#include "remedies/causes.h"
#include "remedies/remedy.h"

namespace oomscope {
namespace {

std::optional<int64_t> figure(int64_t bytes) { return bytes > 0 ? std::optional<int64_t>(bytes) : std::nullopt; }

// Where no frames tell, images are taken for granted.
bool goes_through_convolutions(const Structure& structure) {
  return !structure.has_frames || std::any_of(structure.stacks.begin(), structure.stacks.end(),
                                              [](const StackTraits& traits) { return traits.has(Trait::convolution); });
}

Circumstances circumstances_of(const RunFacts& facts, const Finding& finding) {
  Circumstances circumstances;
  circumstances.kind = facts.diagnosis->kind;
  circumstances.phase = finding.instant.phase;
  circumstances.compute_capability = facts.compute_capability;
  circumstances.is_16_bit = facts.is_16_bit;
  circumstances.is_inference = facts.is_inference();
  circumstances.has_images = goes_through_convolutions(facts.structure);
  circumstances.framework = training_framework(*facts.snapshot);
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
  finding.instant.counted_from_recording = facts.timeline().starts_mid_life;
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

void add_changes(Finding& finding, const RunFacts& facts, std::optional<int64_t> saved_bytes,
                 std::initializer_list<std::string_view> picks) {
  const CauseGuide* guide = find_cause_guide(finding.id);
  if (guide == nullptr) return;
  const Circumstances circumstances = circumstances_of(facts, finding);
  const std::span<const std::string_view> listed(guide->remedies.begin(), guide->remedies.end());
  for (std::string_view id : picks.size() > 0 ? std::span(picks.begin(), picks.size()) : listed) {
    const Remedy* remedy = find_remedy(id);
    const bool known = std::find(listed.begin(), listed.end(), id) != listed.end();
    if (!known || remedy == nullptr || !remedy->applies(circumstances)) continue;
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

void place_at(Finding& finding, const RunFacts& facts, uint32_t event) {
  const Span& span = facts.structure.span_at(event);
  if (span.phase == finding.instant.phase) return;
  if (facts.failed()) finding.failed_in = finding.instant;
  finding.instant.failed = false;
  finding.instant.phase = span.phase;
  finding.instant.event = event;
  if (finding.instant.step) finding.instant.step = span.step;
}

namespace {

// Where the last pass that left something made the largest of it.
void place_at_birth(Finding& finding, const RunFacts& facts, const Growth& growth) {
  const Pass& pass = facts.structure.passes[growth.last_pass];
  std::optional<Allocation> largest;
  for (uint32_t id : facts.left_of(pass.begin, pass.forward_end)) {
    const Allocation& allocation = facts.timeline().allocations[id];
    if (!largest || allocation.requested > largest->requested) largest = allocation;
  }
  if (largest) place_at(finding, facts, largest->begin);
}

}  // namespace

GrowthFinding growth_finding(const RunFacts& facts, const Growth& growth, std::string_view id) {
  const int64_t each = growth.bytes / growth.passes;
  const Pass& first = facts.structure.passes[growth.first_pass];
  const bool outside = growth.site != StackId::none;
  const std::string site = outside ? site_of(facts, growth.site) : call_site(facts, growth.call);
  Finding finding = finding_of(facts, id);
  finding.bytes = growth.bytes;
  finding.claim = Phrase{.key = "cause." + finding.id + (outside ? ".claim-outside" : ".claim")}
                      .with("passes", format_count(growth.passes))
                      .with("bytes", format_bytes(growth.bytes))
                      .with("each", format_bytes(each))
                      .with("site", site);
  finding.surer = surer("list-the-names");
  place_at_birth(finding, facts, growth);
  add_evidence(finding,
               Phrase{.key = "cause.evidence.pass-leaves"}
                   .with("each", format_bytes(each))
                   .with("event", format_count(first.begin))
                   .with("step", std::to_string(first.step)),
               first.begin, each, site);
  add_site(finding, facts, "largest-kept", growth.largest, growth.bytes, growth.blocks);
  return {.finding = std::move(finding), .each = each};
}

void free_after_pass(Finding& finding, const RunFacts& facts, const Growth& growth) {
  const std::vector<Pass>& passes = facts.structure.passes;
  for (uint32_t id : facts.left) {
    if (growth.site != StackId::none && facts.timeline().allocations[id].stack != growth.site) continue;
    const uint32_t pass = facts.pass_at(facts.timeline().allocations[id].begin);
    if (pass == kNoPass || (growth.site == StackId::none && passes[pass].caller != growth.caller) ||
        pass >= growth.last_pass + 1)
      continue;
    // What the program made of the results may be what the next pass works on.
    const uint32_t until = pass + (facts.traits(id).has(Trait::module_call) ? 1 : 2);
    if (until >= passes.size()) continue;
    finding.edits.push_back(RequestEdit{.allocation = id, .free_at = passes[until].begin});
  }
}

std::string call_site(const RunFacts& facts, StackId stack) {
  std::string text = call_text(*facts.snapshot, stack);
  return text.empty() ? site_of(facts, stack) : text;
}

std::string site_of(const RunFacts& facts, StackId stack) { return site_text(*facts.snapshot, stack); }

}  // namespace oomscope
