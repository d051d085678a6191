// 16-bit computing of a run in 32 bits: under autocast, or with the whole model in bf16.
//
// Autocast keeps weights, gradients and states in 32 bits. Projections, attention and what follows from them are
// 16-bit; normalisations, residual sums and the loss stay 32-bit. Each projection's weight is cast once a step, and the
// casts live until their layer's backward. Pure bf16 halves all but masks, indices, statistics and the loss.
//
//   32 bits    normalised x (kept)             projection (kept)   logits            log-softmax
//   autocast   normalised x | 16-bit x (kept)  16-bit (kept)       16-bit | 32-bit   log-softmax
//   backward   a 16-bit weight gradient, then its 32-bit copy, which is the gradient
//
// Whether a model in bf16 casts its logits back before the loss, a run in 32 bits does not show, for there the cast is
// nothing. A loss that is a module takes them as they are; the losses of transformers' causal models cast; others are
// taken to, and that much is unsure.
#include <algorithm>
#include <map>

#include "base/source_path.h"
#include "plan/bias_scratch.h"
#include "plan/measures/common.h"
#include "plan/measures/list.h"

namespace oomscope {
namespace {

constexpr int64_t kMatrixBytes = 64 * 1024;  // less is a vector of weights, or of statistics

// Has the stack a frame of a file whose path ends so?
bool has_file(const Job& job, uint32_t id, std::string_view ending) {
  const StackTable& stacks = job.snapshot->stacks;
  const uint32_t stack = static_cast<uint32_t>(job.blocks[id].stack);
  for (uint32_t f = stacks.starts[stack]; f < stacks.starts[stack + 1]; ++f) {
    const Frame& frame = stacks.frames[stacks.frame_ids[f]];
    if (path_ends_with(job.snapshot->strings.text(frame.filename), ending)) return true;
  }
  return false;
}

// Dropout's mask: a byte an element, made just before its result.
bool is_mask(const Job& job, uint32_t id, uint32_t next) {
  return job.size(id) * 4 == job.size(next) && job.blocks[id].stack == job.blocks[next].stack;
}

class Caster {
 public:
  explicit Caster(const Job& job) : job_(job), editor_(job), parameters_(parameter_sizes(job)) {
    for (const BiasSum& sum : find_bias_sums(job.requests, *job.structure)) {
      if (sum.scratch != kNoAllocation) sums_.insert(sum.scratch);
    }
  }

  Job autocast() {
    for (const JobPass& pass : training_passes(job_)) {
      forward(pass, true);
      backward(pass, true);
      cast_weights(pass);
    }
    return editor_.build();
  }

  Job pure() {
    for (uint32_t id = 0; id < job_.blocks.size(); ++id) {
      const JobBlock& block = job_.blocks[id];
      const bool is_state = is_optimizer_state(job_, id) || is_step_temporary(job_, id);
      if (block.category == Category::parameter || is_state) halve(id);
      // bf16 from the start: the module's move makes the halves, and the 32-bit originals go.
    }
    for (const JobPass& pass : training_passes(job_)) {
      forward(pass, false);
      backward(pass, false);
      const int64_t logits = logits_bytes(pass);
      if (!has_halved_loss_ && !has_cast_loss_ && logits >= kMatrixBytes) editor_.assume(logits + logits / 2);
    }
    return editor_.build();
  }

 private:
  void halve(uint32_t id) { editor_.resize(id, job_.size(id) / 2); }

  [[nodiscard]] int64_t logits_bytes(const JobPass& pass) const {
    int64_t largest = 0;
    for (uint32_t id : job_.made_between(pass.begin, pass.forward_end)) {
      if (job_.traits(id).has(Trait::loss)) largest = std::max(largest, job_.size(id));
    }
    return largest;
  }

  // A sum of the stream that runs through all layers: as large as a layer's output, or as what a layer normalisation
  // makes of it where the stream narrows from stage to stage, and made in a module's own forward.
  [[nodiscard]] bool is_residual(uint32_t id, uint32_t output) const {
    const StackTraits& traits = job_.traits(id);
    const bool is_stream =
        (output != kNoAllocation && job_.size(id) == job_.size(output)) || normalised_.count(job_.size(id)) != 0;
    return is_stream && job_.function_of(id) == "forward" && !traits.has(Trait::linear) &&
           !traits.has(Trait::convolution) && !path_ends_with(job_.file_of(id), "modules/activation.py");
  }

  void forward(const JobPass& pass, bool keeps_residuals) {
    const std::vector<Layer> layers = find_layers(job_, pass);
    const uint32_t output = layers.empty() ? kNoAllocation : layers.front().output;
    const std::vector<uint32_t> ids = job_.made_between(pass.begin, pass.forward_end);
    normalised_.clear();
    uint32_t source = kNoAllocation;  // what a normalisation just made
    int readers = 0;                  // projections of it
    for (uint32_t id : ids) {
      if (job_.function_of(id) == "layer_norm" && job_.size(id) >= kMatrixBytes) normalised_.insert(job_.size(id));
    }
    for (size_t i = 0; i < ids.size(); ++i) {
      const uint32_t id = ids[i];
      const StackTraits& traits = job_.traits(id);
      const JobBlock& block = job_.blocks[id];
      if (block.category == Category::input) continue;
      if (block.category == Category::workspace && block.freed_at == kNowhere) continue;
      // Each projection of one input casts it anew: queries, keys and values.
      if (keeps_residuals && source != kNoAllocation && traits.has(Trait::linear) && ++readers > 1) {
        add_copy(source, block.made_at);
      } else if (!traits.has(Trait::linear) && job_.size(id) >= kMatrixBytes) {
        source = kNoAllocation;
      }
      if (traits.has(Trait::loss)) {
        has_cast_loss_ = has_cast_loss_ || has_file(job_, id, "transformers/loss/loss_utils.py");
        if (!keeps_residuals && has_file(job_, id, "torch/nn/modules/loss.py")) {
          has_halved_loss_ = true;
          if (job_.size(id) >= kMatrixBytes) halve(id);
          continue;
        }
        // The 32-bit copy of the logits, while the loss reads it.
        if (job_.size(id) == logits_bytes(pass)) {
          const uint32_t copy = editor_.add(job_.size(id), id);
          editor_.ask(block.made_at, copy);
          editor_.release(block.made_at + 1, copy);
        }
        continue;
      }
      if (block.phase == Phase::loss) continue;
      if (i + 1 < ids.size() && is_mask(job_, id, ids[i + 1])) continue;
      if (job_.size(id) < kMatrixBytes) continue;
      if (!keeps_residuals) {
        halve(id);
        continue;
      }
      const bool is_norm = is_normalisation(id);
      const bool is_embedding = job_.function_of(id) == "embedding";
      if (is_embedding || is_residual(id, output) || is_before_layers(id, layers)) continue;
      // Group normalisation computes in 32 bits: it keeps a copy of what it reads, and what follows it is 32-bit, too,
      // up to the next convolution. Batch normalisation computes in 16.
      if (job_.function_of(id) == "group_norm" || (i + 1 < ids.size() && reads_for_groups(ids, i))) continue;
      if (keeps_residuals && job_.function_of(id) == "softmax") {
        add_copy(id, block.made_at + 1);
        continue;
      }
      if (is_norm) source = id, readers = 0;
      if (is_norm && job_.function_of(id) != "batch_norm") editor_.scratch(block.made_at, job_.size(id), id);
      halve(id);
    }
  }

  // A 16-bit copy that lives as long as its original.
  void add_copy(uint32_t original, uint32_t position) {
    const uint32_t copy = editor_.add(job_.size(original) / 2, original);
    editor_.ask(position, copy);
    if (job_.blocks[original].freed_at != kNowhere) editor_.release(job_.blocks[original].freed_at, copy);
  }

  // Is it what a group normalisation reads? Scratch may lie between.
  [[nodiscard]] bool reads_for_groups(const std::vector<uint32_t>& ids, size_t i) const {
    size_t next = i + 1;
    while (next + 1 < ids.size() && job_.traits(ids[next]).has(Trait::convolution)) ++next;
    return job_.function_of(ids[next]) == "group_norm" && job_.size(ids[next]) == job_.size(ids[i]) &&
           job_.traits(ids[i]).has(Trait::convolution);
  }

  [[nodiscard]] bool is_normalisation(uint32_t id) const {
    return job_.function_of(id).find("norm") != std::string_view::npos;
  }

  // Sums of embeddings, in front of the first layer.
  [[nodiscard]] bool is_before_layers(uint32_t id, const std::vector<Layer>& layers) const {
    return !layers.empty() && job_.blocks[id].made_at < layers.front().begin && !job_.traits(id).has(Trait::linear) &&
           !job_.traits(id).has(Trait::convolution);
  }

  void backward(const JobPass& pass, bool casts_gradients) {
    const int64_t logits = logits_bytes(pass);
    const std::vector<uint32_t> ids = job_.made_between(pass.forward_end, pass.end);
    const std::vector<Layer> layers = find_layers(job_, pass);
    const int64_t stream = layers.empty() ? 0 : job_.size(layers.front().output);
    uint32_t last_of_loss = kNoAllocation;
    for (size_t i = 0; i < ids.size(); ++i) {
      const uint32_t id = ids[i];
      const JobBlock& block = job_.blocks[id];
      if (job_.size(id) < kMatrixBytes || sums_.count(id) != 0) continue;
      if (block.category == Category::workspace && block.freed_at == kNowhere) continue;
      if (logits > 0 && job_.size(id) == logits && !has_halved_loss_) {
        last_of_loss = id;
        continue;
      }
      const bool is_gradient = parameters_.count(job_.size(id)) != 0;
      if (is_gradient && casts_gradients) {
        editor_.scratch(block.made_at, job_.size(id) / 2, id);
        continue;
      }
      // What a normalisation's backward makes stays 32-bit: its weights' two small gradients follow.
      const bool is_norm = job_.size(id) == stream && i + 2 < ids.size() && job_.size(ids[i + 1]) < kMatrixBytes &&
                           job_.size(ids[i + 1]) == job_.size(ids[i + 2]);
      if (casts_gradients && is_norm) continue;
      halve(id);
    }
    if (last_of_loss != kNoAllocation) cast_loss_gradient(last_of_loss);
  }

  // The logits' gradient becomes 16-bit, and the 32-bit one goes.
  void cast_loss_gradient(uint32_t id) {
    const uint32_t half = editor_.add(job_.size(id) / 2, id);
    uint32_t position = job_.blocks[id].made_at + 1;  // behind what this operation frees
    while (position < job_.requests.kind.size() && job_.requests.kind[position] != RequestKind::malloc) ++position;
    editor_.ask(position, half);
    if (job_.blocks[id].freed_at == kNowhere) return;
    editor_.free_at(id, position);
    editor_.release(job_.blocks[id].freed_at, half);
  }

  // One 16-bit copy a projection, from its forward to its weight's gradient.
  void cast_weights(const JobPass& pass) {
    std::vector<uint32_t> projections;
    int64_t embeddings = 0;
    for (uint32_t id : job_.made_between(pass.begin, pass.forward_end)) {
      const StackTraits& traits = job_.traits(id);
      if (job_.function_of(id) == "embedding") ++embeddings;
      const bool is_workspace = job_.blocks[id].category == Category::workspace;
      if ((traits.has(Trait::linear) || traits.has(Trait::convolution)) && !is_workspace) projections.push_back(id);
    }
    std::vector<uint32_t> gradients;
    for (uint32_t id : job_.made_between(pass.forward_end, pass.end)) {
      if (parameters_.count(job_.size(id)) != 0 && job_.size(id) >= kMatrixBytes) gradients.push_back(id);
    }
    gradients.resize(gradients.size() - std::min<size_t>(gradients.size(), static_cast<size_t>(embeddings)));
    const bool is_paired = projections.size() == gradients.size();
    for (size_t i = 0; i < gradients.size(); ++i) {
      const uint32_t gradient = gradients[gradients.size() - 1 - i];
      const uint32_t copy = editor_.add(job_.size(gradient) / 2, gradient);
      editor_.ask(is_paired ? job_.blocks[projections[i]].made_at : pass.begin, copy);
      editor_.release(job_.blocks[gradient].made_at + 1, copy);
    }
  }

  const Job& job_;
  JobEditor editor_;
  std::set<int64_t> parameters_;
  std::set<int64_t> normalised_;  // sizes that layer normalisations of the pass make
  bool has_halved_loss_ = false;  // it takes logits in 16 bits as they are
  bool has_cast_loss_ = false;    // it casts them to 32
  std::set<uint32_t> sums_;       // their scratch is 32-bit whatever they sum
};

Result<Job> cast(const Job& job, bool pure) {
  if (training_passes(job).empty()) return does_not_apply("no-backward");
  if (parameter_sizes(job).empty()) return does_not_apply("no-parameters");
  if (job.is_16_bit) return does_not_apply("already-16-bit");
  Caster caster(job);
  return pure ? caster.pure() : caster.autocast();
}

}  // namespace

Measure autocast_bf16() {
  return {.id = "autocast-bf16",
          .name = "autocast-bf16",
          .remedy = "mixed-precision",
          .group = MeasureGroup::precision,
          .apply = [](const Job& job, int64_t) { return cast(job, false); },
          .error = 0.11,
          .rank_cost = 1.04};
}
Measure pure_bf16() {
  return {.id = "pure-bf16",
          .name = "pure-bf16",
          .remedy = "mixed-precision",
          .group = MeasureGroup::precision,
          .apply = [](const Job& job, int64_t) { return cast(job, true); },
          .error = 0.08,
          .rank_cost = 1.5};
}

}  // namespace oomscope
