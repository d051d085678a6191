// second-model: another model was made on the card after the first had worked, while the first and its optimizer still
// live: a second experiment in one process, a notebook cell run again.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

// The newest model: made after the last passes of others. Its first span, and how many models were made before it.
struct Newest {
  uint32_t begin = kNoEvent;
  int64_t models = 1;
};

Newest newest_model(const RunFacts& run) {
  Newest newest;
  bool worked = true;  // a pass since the last model was made
  for (const Span& span : run.structure.spans) {
    if (span.begin > run.instant().event) break;
    if (span.phase == Phase::forward) worked = true;
    if (span.phase != Phase::next_model) continue;
    if (worked) {
      newest.begin = span.begin;
      newest.models += 1;
    }
    worked = false;
  }
  return newest;
}

}  // namespace

std::vector<Finding> find_second_model(const CaseFacts& facts) {
  if (facts.run == nullptr || !facts.run->failed()) return {};
  const RunFacts& run = *facts.run;
  const Newest newest = newest_model(run);
  if (newest.begin == kNoEvent) return {};
  int64_t newer = 0;
  int64_t older = 0;  // weights, gradients and optimizer states of the others
  int64_t older_weights = 0;
  int64_t replaced_weights = 0;  // were there when the newer was begun, and are gone
  StackId stack = run.instant().stack;
  std::vector<RequestEdit> frees;
  for (uint32_t id : run.live) {
    const Allocation& allocation = run.timeline().allocations[id];
    const Category category = run.categories[id].category;
    if (allocation.begin != kNoEvent && allocation.begin >= newest.begin) {
      if (run.traits(id).role != StackRole::model) continue;
      newer += allocation.requested;
      stack = allocation.stack;
      continue;
    }
    if (category == Category::parameter) older_weights += allocation.requested;
    if (category == Category::parameter || category == Category::gradient || category == Category::optimizer_state) {
      older += allocation.requested;
      frees.push_back(RequestEdit{.allocation = id, .free_at = newest.begin});
    }
  }
  for (uint32_t id = 0; id < run.categories.size(); ++id) {
    const Allocation& allocation = run.timeline().allocations[id];
    const bool was_there = allocation.begin == kNoEvent || allocation.begin < newest.begin;
    if (run.categories[id].category != Category::parameter || !was_there) continue;
    const bool is_gone = allocation.free_requested >= newest.begin && allocation.free_requested <= run.basis;
    if (is_gone) replaced_weights += allocation.requested;
  }
  const bool making = run.phase == Phase::next_model;
  const bool replaced = replaced_weights >= older_weights;  // converted or moved
  if (replaced || older == 0 || !(making || matters(run, older))) return {};
  Finding finding = finding_of(run, "second-model");
  finding.bytes = older;
  finding.claim = claim_of(finding)
                      .with("models", format_count(newest.models))
                      .with("older", format_bytes(older))
                      .with("newer", format_bytes(newer))
                      .with("site", site_of(run, stack));
  finding.confidence = making || newer * 4 >= older_weights ? Confidence::high : Confidence::medium;
  finding.because = because("model-made-after-passes");
  finding.surer = surer("list-the-names");
  add_evidence(finding,
               Phrase{.key = "cause.evidence.second-model"}
                   .with("event", format_count(newest.begin))
                   .with("bytes", format_bytes(newer))
                   .with("site", site_of(run, stack)),
               newest.begin, newer, site_of(run, stack));
  finding.instant.phase = Phase::next_model;
  add_changes(finding, run, older);
  finding.edits = std::move(frees);
  return {finding};
}

}  // namespace oomscope
