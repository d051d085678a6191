// logits: the output over the vocabulary and what the loss makes of it (upcast, log-softmax, its gradient) are most of
// what a step holds.
#include <algorithm>

#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

// Where the failure came before the loss had got anything: the head's output is the last and by far the largest that
// a linear layer made in this pass, and no other is as large. An MLP that widens four times, or a model whose layers
// all have one size, has no head.
struct Head {
  int64_t size = 0;    // of the largest request
  int64_t second = 0;  // of the largest that is smaller
  int64_t count = 0;   // requests of that size
  StackId stack = StackId::none;
  StackId last = StackId::none;  // of the last request of a linear layer

  [[nodiscard]] bool is_over_vocabulary() const {
    constexpr int64_t kWider = 4;
    return count == 1 && stack == last && second > 0 && size > kWider * second;
  }
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
    head.last = run.trace().stack[i];
    if (size > head.size) {
      head = Head{.size = size, .second = head.size, .count = 1, .stack = head.last, .last = head.last};
    } else if (size == head.size) {
      head.count += 1;
    } else {
      head.second = std::max(head.second, size);
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
  std::vector<uint32_t> copies;  // live, where no category says so
  if (bytes == 0) {
    // The loss is near: it asks itself, or for what it computes in, the head's output in fp32.
    const StackTraits& asking = run.structure.traits(run.instant().stack);
    const bool upcasts = head.size > 0 && request / 512 == head.size * 2 / 512;
    const bool loss_near = asking.has(Trait::loss) || asking.has(Trait::softmax) || upcasts;
    if (!head.is_over_vocabulary() || !loss_near || !is_copy(request)) return {};
    for (uint32_t id : run.live) {
      if (!is_copy(run.timeline().allocations[id].requested)) continue;
      bytes += run.timeline().allocations[id].requested;
      copies.push_back(id);
    }
  }
  const int64_t held = bytes;
  if (in_loss || is_copy(request)) bytes += request;
  constexpr double kShare = 0.7;  // of what does not stay from step to step
  const double passing = static_cast<double>(run.wanted() - run.persistent_bytes());
  if (static_cast<double>(bytes) < kShare * passing) return {};
  Finding finding = finding_of(run, "logits");
  finding.bytes = bytes;
  finding.claim = claim_of(finding)
                      .with("bytes", format_bytes(held))
                      .with("request", format_bytes(request))
                      .with("site", site_of(run, run.instant().stack));
  finding.confidence = run.bytes_at(Category::logits) > 0 ? Confidence::high : Confidence::medium;
  finding.because = because("size-of-head");
  if (run.phase != Phase::backward) finding.instant.phase = Phase::loss;
  if (head.size > 0) add_site(finding, run, "head", head.stack, head.size, 1);
  add_changes(finding, run, bytes);
  for (uint32_t id : copies) finding.edits.push_back(RequestEdit{.allocation = id, .free_at = 0});
  return {finding};
}

}  // namespace oomscope
