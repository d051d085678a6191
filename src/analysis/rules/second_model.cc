// second-model: another model was made on the card after the first had worked, while the first and its optimizer still
// live: a second experiment in one process, a notebook cell run again.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {

std::vector<Finding> find_second_model(const CaseFacts& facts) {
  if (facts.run == nullptr || !facts.run->failed()) return {};
  const RunFacts& run = *facts.run;
  int64_t newer = 0;
  uint32_t first_new = kNoEvent;
  StackId stack = StackId::none;
  for (uint32_t id : run.live) {
    const Allocation& allocation = run.timeline().allocations[id];
    if (allocation.begin == kNoEvent || run.traits(id).role != StackRole::model) continue;
    if (run.structure.span_at(allocation.begin).phase != Phase::next_model) continue;
    newer += allocation.requested;
    if (first_new == kNoEvent) {
      first_new = allocation.begin;
      stack = allocation.stack;
    }
  }
  const bool making = run.phase == Phase::next_model;
  if (first_new == kNoEvent && !making) return {};
  if (first_new == kNoEvent) {
    first_new = run.instant().event;
    stack = run.instant().stack;
  }
  // Of the first: its weights, their gradients, and the state of its optimizer.
  int64_t older = 0;
  int64_t older_weights = 0;
  for (uint32_t id : run.live) {
    const Allocation& allocation = run.timeline().allocations[id];
    if (allocation.begin != kNoEvent && allocation.begin >= first_new) continue;
    const Category category = run.categories[id].category;
    if (category == Category::parameter) older_weights += allocation.requested;
    if (category == Category::parameter || category == Category::gradient || category == Category::optimizer_state) {
      older += allocation.requested;
    }
  }
  const bool replaced = older_weights * 4 < newer;  // converted or moved: the old blocks are gone
  if (replaced || older == 0 || !(making || matters(run, older))) return {};
  Finding finding = finding_of(run, "second-model");
  finding.bytes = older;
  finding.claim = std::move(finding.claim)
                      .with("older", format_bytes(older))
                      .with("newer", format_bytes(newer))
                      .with("site", site_of(run, stack));
  finding.confidence = making || newer * 4 >= older_weights ? Confidence::high : Confidence::medium;
  finding.because = because("model-made-after-passes");
  finding.surer = surer("list-the-names");
  add_evidence(finding,
               Phrase{.key = "cause.evidence.second-model"}
                   .with("event", format_count(first_new))
                   .with("bytes", format_bytes(newer))
                   .with("site", site_of(run, stack)),
               first_new, newer, site_of(run, stack));
  finding.instant.phase = Phase::next_model;
  add_changes(finding, {"delete-references", "clear-traceback"}, older);
  return {finding};
}

}  // namespace oomscope
