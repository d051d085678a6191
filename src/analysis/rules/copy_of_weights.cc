// copy-of-weights: a second copy of the weights lives on the card: deepcopy of the model for averaging (EMA), a
// state_dict cloned as the best so far, a state gathered before saving.
//
// Told by frames (copy.deepcopy, state_dict), or by blocks of one line of the program whose sizes are the parameters'.
#include <unordered_set>

#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

struct Weights {
  int64_t bytes = 0;
  std::unordered_set<int64_t>
      sizes;  // of parameters, also of those that were joined since, and of the optimizer's state
};

Weights weights_of(const RunFacts& run) {
  Weights weights;
  for (uint32_t id : run.live) {
    const Allocation& allocation = run.timeline().allocations[id];
    const CategoryReason reason = run.categories[id].reason;
    if (run.categories[id].category != Category::parameter || reason == CategoryReason::copy_frames) continue;
    weights.bytes += allocation.requested;
  }
  for (uint32_t id = 0; id < run.categories.size(); ++id) {
    const Category category = run.categories[id].category;
    const bool copied = run.categories[id].reason == CategoryReason::copy_frames;
    const bool of_weights = category == Category::parameter || category == Category::optimizer_state;
    if (of_weights && !copied) weights.sizes.insert(run.timeline().allocations[id].requested);
  }
  return weights;
}

bool is_copy_frame(const StackTraits& traits) {
  if (traits.has(Trait::module_init)) return false;  // layers cloned while a model is built
  return traits.role == StackRole::copy || traits.role == StackRole::state_dict;
}

// Blocks of one stack outside of modules, all of parameters' sizes.
class CloneFinder {
 public:
  CloneFinder(const RunFacts& run, const Weights& weights) {
    std::unordered_set<uint32_t> others;  // stacks with a block that is no parameter's size
    for (uint32_t id : run.live) {
      const Allocation& allocation = run.timeline().allocations[id];
      if (run.traits(id).role != StackRole::user) continue;
      if (weights.sizes.count(allocation.requested) == 0) others.insert(static_cast<uint32_t>(allocation.stack));
    }
    for (const StackGroup& group : run.groups) {
      const bool several =
          group.blocks >= 4 && group.distinct_sizes >= std::min<int64_t>(2, static_cast<int64_t>(weights.sizes.size()));
      if (run.structure.traits(group.stack).role != StackRole::user || !several) continue;
      // A copy that failed is not whole.
      const bool under_way = run.failed() && run.instant().stack == group.stack;
      if ((under_way || group.bytes * 2 >= weights.bytes) && others.count(static_cast<uint32_t>(group.stack)) == 0) {
        clones_.insert(static_cast<uint32_t>(group.stack));
      }
    }
  }
  [[nodiscard]] bool is_clone(StackId stack) const { return clones_.count(static_cast<uint32_t>(stack)) != 0; }

 private:
  std::unordered_set<uint32_t> clones_;
};

}  // namespace

std::vector<Finding> find_copy_of_weights(const CaseFacts& facts) {
  if (facts.run == nullptr) return {};
  const RunFacts& run = *facts.run;
  const Weights weights = weights_of(run);
  const CloneFinder clones(run, weights);
  const uint32_t from = run.structure.passes.empty() ? 0 : run.structure.passes.front().begin;
  int64_t bytes = 0;
  int64_t blocks = 0;
  bool by_frames = false;
  const StackGroup* first = nullptr;
  for (const StackGroup& group : run.groups) {
    if (group.first_event < from) continue;
    const bool framed = is_copy_frame(run.structure.traits(group.stack));
    if (!framed && !clones.is_clone(group.stack)) continue;
    bytes += group.bytes;
    blocks += group.blocks;
    by_frames = by_frames || framed;
    if (first == nullptr || group.bytes > first->bytes) first = &group;
  }
  const StackId asking = run.instant().stack;
  const bool copying = run.failed() && (is_copy_frame(run.structure.traits(asking)) || clones.is_clone(asking));
  const bool is_copy = first != nullptr && bytes * 2 >= weights.bytes && weights.bytes > 0;
  if (!copying && !(is_copy && (run.failed() ? matters(run, bytes) : true))) return {};
  const StackId stack = copying || first == nullptr ? run.instant().stack : first->stack;
  Finding finding = finding_of(run, "copy-of-weights");
  finding.bytes = bytes;
  finding.claim = claim_of(finding)
                      .with("bytes", format_bytes(bytes))
                      .with("weights", format_bytes(weights.bytes))
                      .with("site", site_of(run, stack));
  by_frames = by_frames || (copying && !clones.is_clone(asking));
  finding.confidence = by_frames ? Confidence::high : Confidence::medium;
  finding.because = because(by_frames ? "copied-by-frames" : "sizes-of-parameters");
  finding.drops_request = copying;
  if (!by_frames) finding.surer = surer("name-the-copy");
  if (!run.failed() && first != nullptr) {
    finding.instant.event = first->first_event;
    finding.instant.phase = run.structure.span_at(first->first_event).phase;
    finding.instant.step = run.structure.span_at(first->first_event).step;
  }
  add_site(finding, run, "copied", stack, bytes, blocks);
  add_changes(finding, run, bytes);
  for (uint32_t id : run.live) {
    const Allocation& allocation = run.timeline().allocations[id];
    if (allocation.begin == kNoEvent || allocation.begin < from) continue;
    const bool copied = is_copy_frame(run.traits(id)) || clones.is_clone(allocation.stack);
    if (copied) finding.edits.push_back(RequestEdit{.allocation = id, .free_at = 0});
  }
  return {finding};
}

}  // namespace oomscope
