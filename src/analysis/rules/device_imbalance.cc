// device-imbalance: one device of the process holds much more than the others: nn.DataParallel gathers outputs and
// computes the loss on its first device.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {

std::vector<Finding> find_device_imbalance(const CaseFacts& facts) {
  if (facts.run == nullptr || !facts.run->failed()) return {};
  const RunFacts& run = *facts.run;
  std::vector<int64_t> reserved;
  for (const SnapshotSegment& segment : run.snapshot->segments) {
    if (segment.device < 0 || segment.device >= static_cast<int32_t>(run.snapshot->traces.size())) continue;
    reserved.resize(run.snapshot->traces.size());
    reserved[static_cast<size_t>(segment.device)] += segment.active_size;
  }
  std::vector<int64_t> others;
  for (size_t i = 0; i < reserved.size(); ++i) {
    if (static_cast<int32_t>(i) != run.timeline().device && reserved[i] > 0) others.push_back(reserved[i]);
  }
  int64_t gathered = 0;
  StackId stack = StackId::none;
  for (uint32_t id : run.live) {
    if (!run.traits(id).has(Trait::data_parallel) || run.traits(id).has(Trait::module_move)) continue;
    gathered += run.timeline().allocations[id].requested;
    stack = run.timeline().allocations[id].stack;
  }
  if (others.empty()) return {};
  const bool gathers = run.structure.traits(run.instant().stack).has(Trait::data_parallel);
  if (gathers) {
    gathered += run.request();
    stack = run.instant().stack;
  }
  std::nth_element(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2), others.end());
  const int64_t median = others[others.size() / 2];
  const int64_t wanted = run.instant().active_bytes + (gathers ? run.request() : 0);
  const int64_t surplus = wanted - median;
  const bool uneven = surplus * 4 >= wanted && matters(run, surplus);
  if (!uneven || (stack == StackId::none && others.size() < 2)) return {};
  Finding finding = finding_of(run, "device-imbalance");
  finding.bytes = surplus;
  finding.claim = claim_of(finding)
                      .with("device", std::to_string(run.timeline().device))
                      .with("bytes", format_bytes(surplus))
                      .with("median", format_bytes(median));
  finding.confidence = stack != StackId::none ? Confidence::high : Confidence::medium;
  finding.because = because(stack != StackId::none ? "data-parallel-frames" : "devices-differ");
  if (stack != StackId::none) add_site(finding, run, "gathered", stack, gathered, 0);
  add_changes(finding, run, surplus);
  return {finding};
}

}  // namespace oomscope
