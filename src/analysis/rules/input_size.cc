// input-size: a convolutional network's first pass fails: its activations grow with the pixels of a sample, and a
// sample is large. The batch could be the reason as well; where labels tell how many samples there are, they decide.
#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

struct Input {
  int64_t bytes = 0;
  int64_t samples = 0;  // as the labels tell: one int64 a sample; 0: unknown
};

Input input_of(const RunFacts& run, uint32_t pass) {
  constexpr int64_t kMostLabels = 1 << 16;
  Input input;
  const uint32_t begin = run.structure.passes[pass].begin;
  const uint32_t previous = pass == 0 ? 0 : run.structure.passes[pass - 1].end;
  for (uint32_t id : run.live) {
    const Allocation& allocation = run.timeline().allocations[id];
    if (allocation.begin == kNoEvent || allocation.begin >= begin || allocation.begin < previous) continue;
    if (run.categories[id].category != Category::input) continue;
    input.bytes = std::max(input.bytes, allocation.requested);
    if (allocation.requested <= kMostLabels && allocation.requested % 8 == 0) input.samples = allocation.requested / 8;
  }
  return input;
}

}  // namespace

std::vector<Finding> find_input_size(const CaseFacts& facts) {
  if (facts.run == nullptr || !facts.run->failed()) return {};
  const RunFacts& run = *facts.run;
  const uint32_t index = run.pass_at(run.instant().event);
  if (index == kNoPass) return {};
  int64_t convolved = 0;
  int64_t made = run.request();
  for (uint32_t p = 0; p < index; ++p) {
    if (run.structure.passes[p].caller == run.structure.passes[index].caller) return {};  // it has worked before
  }
  for (uint32_t id : run.live) {
    const Allocation& allocation = run.timeline().allocations[id];
    if (allocation.begin == kNoEvent || allocation.begin < run.structure.passes[index].begin) continue;
    made += allocation.requested;
    if (run.traits(id).has(Trait::convolution)) convolved += allocation.requested;
  }
  constexpr double kShare = 0.5;
  const bool convolves = convolved * 10 >= made || run.structure.traits(run.instant().stack).has(Trait::convolution);
  if (!convolves || run.share(made) < kShare) return {};
  const Input input = input_of(run, index);
  constexpr int64_t kLargeSample = int64_t{512} * 512 * 3 * 4;  // bytes of an image in fp32
  if (input.samples > 0 && input.bytes / input.samples < kLargeSample) return {};
  if (input.samples == 0 && input.bytes < kLargeSample) return {};
  Finding finding = finding_of(run, "input-size");
  finding.bytes = made;
  finding.claim = claim_of(finding)
                      .with("bytes", format_bytes(made))
                      .with("input", format_bytes(input.bytes))
                      .with("site", call_site(run, run.instant().stack));
  finding.confidence = input.samples > 0 ? Confidence::high : Confidence::medium;
  finding.because = because(input.samples > 0 ? "large-samples" : "input-or-batch");
  if (input.samples == 0) finding.surer = surer("say-the-shape");
  add_evidence(
      finding,
      Phrase{.key = "cause.evidence.input"}.with("input", format_bytes(input.bytes)).with("bytes", format_bytes(made)),
      run.structure.passes[index].begin, input.bytes);
  add_changes(finding, run, std::nullopt, {"smaller-input", "process-in-chunks", "checkpointing", "smaller-batch"});
  return {finding};
}

}  // namespace oomscope
