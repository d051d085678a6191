// logits: the output over the vocabulary and what the loss makes of it (upcast, log-softmax, its gradient) are most of
// what a step holds.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

// Where the failure came before the loss had asked for anything: the head's output is the largest that any linear layer
// made in this pass, by far, and the request is for a copy of it (or one of twice the width).
struct Head {
  int64_t size = 0;
  int64_t second = 0;
  int64_t made = 0;     // how often: a head is called once, a layer's projection for each layer
  bool is_last = true;  // no other linear layer was called behind it
  StackId stack = StackId::none;
};

Head head_of(const RunFacts& run, uint32_t pass) {
  Head head;
  const uint32_t begin = run.structure.passes[pass].begin;
  for (uint32_t i = begin; i < run.instant().event; ++i) {
    if (run.trace().action[i] != Action::alloc) continue;
    const StackTraits& traits = run.structure.traits(run.trace().stack[i]);
    const uint32_t id = run.timeline().allocation_of[i];
    const bool is_workspace = id != kNoAllocation && run.categories[id].category == Category::workspace;
    if (!traits.has(Trait::linear) || is_workspace) continue;
    const int64_t size = run.trace().size[i];
    if (size > head.size) {
      head = Head{.size = size, .second = head.size, .made = 1, .is_last = true, .stack = run.trace().stack[i]};
    } else if (size == head.size) {
      head.made += 1;
    } else {
      head.second = std::max(head.second, size);
      head.is_last = false;
    }
  }
  return head;
}

}  // namespace

std::vector<Finding> find_logits(const CaseFacts& facts) {
  if (facts.run == nullptr || !facts.run->failed()) return {};
  const RunFacts& run = *facts.run;
  const uint32_t pass = run.pass_at(run.instant().event);
  if (pass == kNoPass) return {};
  const Head head = head_of(run, pass);
  const int64_t request = run.request();
  const bool in_loss = run.phase == Phase::loss;
  const auto is_copy = [&](int64_t size) {
    return head.size > 0 && (size / 512 == head.size / 512 || size / 512 == head.size * 2 / 512);
  };
  int64_t bytes = run.bytes_at(Category::logits);
  if (bytes == 0) {
    // Inside of the model a copy of the first projection is no loss; behind others it may be a model's own loss.
    const StackTraits& asking = run.structure.traits(run.instant().stack);
    if (asking.has(Trait::module_call) && !asking.has(Trait::loss) && head.second == 0) return {};
    if (head.made > 1 || !head.is_last || head.size < 4 * head.second || !is_copy(request)) return {};
    for (uint32_t id : run.live) {
      if (is_copy(run.timeline().allocations[id].requested)) bytes += run.timeline().allocations[id].requested;
    }
  }
  if (in_loss || is_copy(request)) bytes += request;
  constexpr double kShare = 0.7;  // of what does not stay from step to step
  const double passing = static_cast<double>(run.wanted() - run.persistent_bytes());
  if (static_cast<double>(bytes) < kShare * passing) return {};
  Finding finding = finding_of(run, "logits");
  finding.bytes = bytes;
  finding.claim = claim_of(finding)
                      .with("bytes", format_bytes(bytes))
                      .with("request", format_bytes(request))
                      .with("site", site_of(run, run.instant().stack));
  finding.confidence = run.bytes_at(Category::logits) > 0 ? Confidence::high : Confidence::medium;
  finding.because = because("size-of-head");
  if (run.phase != Phase::backward) finding.instant.phase = Phase::loss;
  if (head.size > 0) add_site(finding, run, "head", head.stack, head.size, 1);
  add_changes(finding, run, {"chunked-loss", "smaller-batch", "smaller-input", "mixed-precision"}, bytes);
  return {finding};
}

}  // namespace oomscope
