// scaled_dot_product_attention in place of attention written out: no matrices of length times length, in forward or
// backward, and a few rows of statistics in their place. And the way back.
//
//   written out   scores = q @ k.T, scaled, softmax (kept) | scores @ v         backward: two gradients of that size
//   fused         out (kept), log-sum-exp: a 32-bit number a row (kept)
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "plan/measures/common.h"
#include "plan/measures/list.h"

namespace oomscope {
namespace {

constexpr int64_t kIndexBytes = 8;
constexpr int64_t kStatisticBytes = 4;
constexpr int64_t kRowsTogether = 32;  // the statistics of so many rows are asked for at a time

struct Scores {
  int64_t bytes = 0;          // of one matrix; 0: none is stored
  bool of_multihead = false;  // nn.MultiheadAttention's
};

// What fused kernels return and keep: the result and, right behind it, its statistics, a small whole part of it. No
// projection is so small; where attention is written out, the result itself stands behind the scores.
struct FusedCall {
  uint32_t result = kNoAllocation;
  uint32_t statistics = kNoAllocation;
};

std::vector<FusedCall> find_fused_calls(const Job& job) {
  constexpr int64_t kLeastRatio = 8;  // of 16 elements a head in 16 bits
  constexpr int64_t kMostRatio = 256;
  const std::vector<uint32_t> ids = job.made_between(0, static_cast<uint32_t>(job.requests.kind.size()));
  std::set<int64_t> projections;
  for (uint32_t id : ids) {
    if (job.blocks[id].phase == Phase::forward && job.traits(id).has(Trait::linear)) projections.insert(job.size(id));
  }
  std::vector<FusedCall> calls;
  for (size_t i = 1; i < ids.size(); ++i) {
    const uint32_t result = ids[i - 1];
    const uint32_t id = ids[i];
    const StackTraits& traits = job.traits(id);
    if (!traits.has(Trait::attention) || traits.has(Trait::linear) || projections.count(job.size(id)) != 0) continue;
    if (job.blocks[id].stack != job.blocks[result].stack || job.blocks[id].phase != Phase::forward) continue;
    const int64_t ratio = job.size(result) / std::max<int64_t>(job.size(id), 1);
    const bool is_whole = job.size(id) % (kRowsTogether * kStatisticBytes) == 0;
    if (is_whole && ratio >= kLeastRatio && ratio <= kMostRatio) calls.push_back({.result = result, .statistics = id});
  }
  return calls;
}

// The size of the scores: what a softmax in an attention function makes, or, where it has no frame of its own, the
// largest size that such functions keep, if it is larger than what projections make.
Scores find_scores(const Job& job) {
  int64_t projection = 0;
  Scores kept;
  Scores softmax;
  const auto raise = [](Scores& scores, int64_t bytes, bool of_multihead) {
    if (bytes > scores.bytes) scores = {bytes, of_multihead};
  };
  std::set<uint32_t> fused;
  for (const FusedCall& call : find_fused_calls(job)) fused.insert({call.result, call.statistics});
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const JobBlock& block = job.blocks[id];
    if (block.phase != Phase::forward || fused.count(id) != 0) continue;
    const StackTraits& traits = job.traits(id);
    if (!traits.has(Trait::attention)) continue;
    if (traits.has(Trait::linear)) {
      projection = std::max(projection, job.size(id));
    } else if (job.is_kept_for_backward(id) ||
               (block.pass < job.passes.size() && !job.passes[block.pass].has_backward)) {
      raise(kept, job.size(id), traits.has(Trait::multihead));
      if (traits.has(Trait::softmax)) raise(softmax, job.size(id), traits.has(Trait::multihead));
    }
  }
  if (softmax.bytes > 0) return softmax;
  constexpr int64_t kTellingBytes = 64 * 1024;  // less is a mask's row, or the state of a generator
  return kept.bytes > std::max(projection, kTellingBytes) ? kept : Scores{};
}

Result<Job> without(const Job& job, int64_t scores) {
  JobEditor editor(job);
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const JobBlock& block = job.blocks[id];
    const bool is_matrix = job.size(id) == scores || job.size(id) * 2 == scores || job.size(id) * 4 == scores;
    const bool in_forward =
        block.phase == Phase::forward && job.traits(id).has(Trait::attention) && !job.traits(id).has(Trait::linear);
    if (is_matrix && in_forward) editor.drop(id);
    if (job.size(id) == scores && block.phase == Phase::backward) editor.drop(id);
  }
  return editor.build();
}

Result<Job> fuse(const Job& job) {
  const Scores scores = find_scores(job);
  if (scores.bytes == 0) return does_not_apply("no-scores");
  if (scores.of_multihead) return does_not_apply("multihead");
  return without(job, scores.bytes);
}

Result<Job> without_weights(const Job& job) {
  const Scores scores = find_scores(job);
  if (scores.bytes == 0 || !scores.of_multihead) return does_not_apply("no-multihead");
  return without(job, scores.bytes);
}

// Positions 0, 1, 2, ... as indices, made once in front of the layers: a whole part of the tokens' indices. 0: no such
// block, or several that it could be.
int64_t sequence_length(const Job& job, const JobPass& pass, uint32_t first_layer) {
  int64_t tokens = 0;
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const JobBlock& block = job.blocks[id];
    if (block.category == Category::input && block.made_at < first_layer) tokens = std::max(tokens, job.size(id));
  }
  std::map<int64_t, int64_t> count;  // of each size
  bool looks_up = false;
  for (uint32_t id : job.made_between(pass.begin, first_layer)) {
    if (job.blocks[id].phase != Phase::forward) continue;
    ++count[job.size(id)];
    looks_up = looks_up || job.function_of(id) == "embedding";
  }
  int64_t length = 0;
  for (const auto& [bytes, times] : count) {
    if (times != 1 || bytes < kRowsTogether * kIndexBytes || bytes % kIndexBytes != 0 || tokens % bytes != 0) continue;
    if (length != 0) return 0;
    length = bytes / kIndexBytes;
  }
  return looks_up ? length : 0;
}

// One matrix is kept, two more exist for a moment in forward and in backward.
void write_out(const Job& job, uint32_t result, uint32_t statistics, int64_t scores, JobEditor& editor) {
  const JobBlock& block = job.blocks[result];
  const uint32_t raw = editor.add(scores, result);
  const uint32_t weights = editor.add(scores, result);
  editor.ask(block.made_at, raw);
  editor.ask(block.made_at, weights);
  editor.release(block.made_at, raw);
  editor.drop(statistics);
  uint32_t position = job.blocks[statistics].freed_at;
  if (position == kNowhere) return;
  editor.release(position, weights);
  while (position > 0 && job.requests.kind[position] != RequestKind::malloc) --position;
  const uint32_t gradient = editor.add(scores, result);
  editor.ask(position, gradient);
  editor.scratch(position, scores, result);
  editor.release(position, gradient);
}

Result<Job> eager(const Job& job) {
  const std::vector<JobPass> passes = training_passes(job);
  if (passes.empty()) return does_not_apply("no-backward");
  if (find_scores(job).bytes > 0) return does_not_apply("stores-scores");
  const std::vector<FusedCall> calls = find_fused_calls(job);
  const std::vector<Layer> layers = find_layers(job, passes.front());
  if (calls.empty() || layers.empty()) return does_not_apply("no-fused-attention");
  const int64_t length = sequence_length(job, passes.front(), layers.front().begin);
  if (length == 0) return does_not_apply("length-unknown");
  const int64_t element = job.is_16_bit ? 2 : 4;
  JobEditor editor(job);
  for (const FusedCall& call : calls) {
    if (!job.is_kept_for_backward(call.statistics)) continue;
    const int64_t scores = job.size(call.statistics) / kStatisticBytes * length * element;
    write_out(job, call.result, call.statistics, scores, editor);
  }
  return editor.build();
}

}  // namespace

Measure attention_without_weights() {
  return {.id = "need-weights-false",
          .name = "need-weights-false",
          .remedy = "need-weights-false",
          .group = MeasureGroup::attention,
          .apply = [](const Job& job, int64_t) { return without_weights(job); },
          .rank_cost = 0.9};
}
Measure fused_attention_kernel() {
  return {.id = "fused-attention",
          .name = "fused-attention",
          .remedy = "fused-attention",
          .group = MeasureGroup::attention,
          .apply = [](const Job& job, int64_t) { return fuse(job); },
          .rank_cost = 0.9};
}
Measure eager_attention() {
  return {.id = "eager-attention",
          .name = "eager-attention",
          .remedy = "fused-attention",
          .group = MeasureGroup::attention,
          .apply = [](const Job& job, int64_t) { return eager(job); },
          .rank_cost = 1.2};
}

}  // namespace oomscope
