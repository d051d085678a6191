// checkpoint-on-gpu: a checkpoint was read to the card beside the model that takes its values, and its tensors are
// still there.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

// Parameters that modules made: without them the checkpoint is the model itself.
int64_t bytes_of_model(const RunFacts& run) {
  int64_t bytes = 0;
  for (uint32_t id : run.live_at_peak) {
    const StackTraits& traits = run.traits(id);
    if (run.categories[id].category != Category::parameter) continue;
    if (traits.role != StackRole::file_load) bytes += run.timeline().allocations[id].requested;
  }
  return bytes;
}

}  // namespace

std::vector<Finding> find_checkpoint_on_gpu(const CaseFacts& facts) {
  if (facts.run == nullptr) return {};
  const RunFacts& run = *facts.run;
  int64_t bytes = 0;
  int64_t blocks = 0;
  StackId stack = StackId::none;
  std::vector<RequestEdit> never;  // had it been read to the CPU
  for (uint32_t id : run.live_at_peak) {
    if (run.traits(id).role != StackRole::file_load) continue;
    const Allocation& allocation = run.timeline().allocations[id];
    bytes += allocation.requested;
    blocks += 1;
    stack = allocation.stack;
    never.push_back(RequestEdit{.allocation = id, .free_at = 0});
  }
  const bool reading = run.failed() && run.structure.traits(run.instant().stack).role == StackRole::file_load;
  if (reading) stack = run.instant().stack;
  // A checkpoint with Adam's state is three times the model, and may hold averaged weights too.
  constexpr int64_t kMostOfModel = 6;
  const int64_t model = bytes_of_model(run);
  if (model == 0 || model * kMostOfModel < bytes) return {};
  if (!reading && !matters(run, bytes)) return {};
  Finding finding = finding_of(run, "checkpoint-on-gpu");
  finding.bytes = bytes;
  finding.claim = claim_of(finding).with("bytes", format_bytes(bytes)).with("site", site_of(run, stack));
  finding.confidence = Confidence::high;
  finding.because = because("read-from-file");
  add_site(finding, run, "read-from-file", stack, bytes, blocks);
  finding.drops_request = reading;
  if (reading) finding.instant.phase = Phase::resume;
  add_changes(finding, run, bytes);
  finding.edits = std::move(never);
  return {finding};
}

}  // namespace oomscope
