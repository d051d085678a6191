// Note [What tells a parameter from a gradient]
//
// A request is bytes and a stack; that it is a parameter is written nowhere. What tells:
//
//   born in            and then                                      is
//   model made/moved   -                                             parameter
//   optimizer step     lives on behind it                            optimizer state
//                      dies in it                                    temporary (foreach lists, casts)
//   backward           lives on behind it                            gradient
//                      dies in it                                    temporary
//   forward            lives on into backward, or the pass's end     activation
//                      dies in it                                    temporary; in a convolution, at once: workspace
//   loss               -                                             logits/loss
//   outside, before    dies with its pass or the next                input
//   forward            never dies, as large as a gradient            parameter
//   the first pass     never dies, and no later pass repeats it      workspace of a library
//
// Where the recording ends first (a failure), lifetimes say nothing of what was born last: then the same stack's
// earlier requests speak for it, and sizes (a parameter's size in backward is a gradient).
//
// In mid-life, parameters, optimizer state and gradients are among the blocks of the start, which have no stack. They
// are told by size: let g gradients of size s be born in one step. Of n blocks of size s that outlive everything, g
// are parameters and the rest optimizer state, unless the window shows that state being made. A block of the start
// that dies in zero_grad is a gradient, one that dies in forward or backward an activation.
//
// Linear in events: each allocation is looked at twice, sizes are counted in a hash map.
#include "model/categories.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace oomscope {
namespace {

// What cuBLAS keeps for a handle and a stream: 8 MiB + 128 KiB by default, 32 MiB on Hopper; cublasLt 4 or 32 MiB. A
// size alone proves nothing, tensors have these sizes too: see learn_workspaces().
// Of a stream's first use.
bool is_main_workspace(int64_t bytes) { return bytes == 8519680 || bytes == (32 << 20); }
bool is_workspace_size(int64_t bytes) { return is_main_workspace(bytes) || bytes == (4 << 20); }

// Handles belong to threads: forward's and backward's.
constexpr int64_t kHandles = 2;

class Categorizer {
 public:
  Categorizer(const Timeline& timeline, const Structure& structure)
      : timeline_(timeline), trace_(timeline.trace()), structure_(structure) {}

  std::vector<AllocationCategory> run() {
    out_.resize(timeline_.allocations.size());
    if (structure_.span_of.empty()) {
      categorize_without_history();
      return std::move(out_);
    }
    find_end_of_work();
    learn_stacks();
    learn_sizes();
    learn_logits();
    learn_workspaces();
    learn_streams();
    for (uint32_t i = 0; i < out_.size(); ++i) {
      const Allocation& allocation = timeline_.allocations[i];
      if (allocation.begin != kNoEvent) out_[i] = born(allocation);
    }
    categorize_start();
    return std::move(out_);
  }

 private:
  using Sure = Confidence;

  [[nodiscard]] static AllocationCategory is(Category category, CategoryReason reason, Confidence confidence) {
    return AllocationCategory{.category = category, .reason = reason, .confidence = confidence};
  }

  [[nodiscard]] const Span& birth(const Allocation& allocation) const { return structure_.span_at(allocation.begin); }
  // Freed by the program while it worked; what is freed behind the last request only goes because the program ends.
  [[nodiscard]] bool dies(const Allocation& allocation) const { return allocation.free_requested < end_of_work_; }
  [[nodiscard]] const Pass* pass_of(const Span& span) const {
    return span.pass == kNoPass ? nullptr : &structure_.passes[span.pass];
  }

  // Where the phase of the allocation's birth is over: forward and loss of a pass count as one.
  [[nodiscard]] uint32_t phase_end(const Span& span) const {
    const Pass* pass = pass_of(span);
    if (pass == nullptr) return span.end;
    return span.phase == Phase::backward ? std::max(pass->end, span.end) : pass->forward_end;
  }

  [[nodiscard]] bool dies_in_phase(const Allocation& allocation) const {
    return dies(allocation) && allocation.free_requested < phase_end(birth(allocation));
  }

  // Is the phase of its birth over before the recording is?
  [[nodiscard]] bool phase_is_over(const Span& span) const { return phase_end(span) <= end_of_work_; }

  // --- what is learned first ---------------------------------------------------------------------------------------

  void find_end_of_work() {
    end_of_work_ = structure_.spans.back().begin;
    for (uint32_t i = static_cast<uint32_t>(trace_.size_events()); i-- > end_of_work_;) {
      if (trace_.action[i] == Action::alloc || trace_.action[i] == Action::oom) {
        end_of_work_ = i;
        return;
      }
    }
  }

  // By stack: how many requests died in the phase of their birth, of those whose phase was over.
  struct StackHistory {
    uint32_t died = 0;
    uint32_t outlived = 0;
  };

  void learn_stacks() {
    histories_.resize(structure_.stacks.size());
    for (const Allocation& allocation : timeline_.allocations) {
      if (allocation.begin == kNoEvent || allocation.stack == StackId::none) continue;
      StackHistory& history = histories_[static_cast<uint32_t>(allocation.stack)];
      if (dies_in_phase(allocation)) {
        history.died += 1;
      } else if (phase_is_over(birth(allocation))) {
        history.outlived += 1;
      }
    }
  }

  // Will it die in its phase? Where the recording ends first, the stack's other requests tell.
  [[nodiscard]] bool is_short_lived(const Allocation& allocation) const {
    if (dies(allocation) || phase_is_over(birth(allocation))) return dies_in_phase(allocation);
    const StackHistory& history = histories_[static_cast<uint32_t>(allocation.stack)];
    return history.died > history.outlived;
  }

  // Sizes of gradients and of parameters with how many there are of each.
  void learn_sizes() {
    uint32_t best_pass = kNoPass;
    uint32_t gradients = 0;
    uint32_t most = 0;
    uint32_t pass = kNoPass;
    for (const Allocation& allocation : timeline_.allocations) {
      if (allocation.begin == kNoEvent) continue;
      const Span& span = birth(allocation);
      if (span.phase == Phase::backward && span.pass != pass) {
        pass = span.pass;
        gradients = 0;
      }
      if (is_gradient_by_life(allocation, span)) {
        gradients += 1;
        if (gradients > most) {
          most = gradients;
          best_pass = span.pass;
        }
      }
      if (is_model(allocation, span)) model_sizes_[allocation.requested] += 1;
      if (span.phase == Phase::optimizer_step && !dies_in_phase(allocation) && phase_is_over(span)) {
        state_sizes_[allocation.requested] += 1;
      }
    }
    if (best_pass == kNoPass) return;
    for (const Allocation& allocation : timeline_.allocations) {
      if (allocation.begin == kNoEvent) continue;
      const Span& span = birth(allocation);
      if (span.pass == best_pass && is_gradient_by_life(allocation, span)) gradient_sizes_[allocation.requested] += 1;
    }
  }

  [[nodiscard]] bool is_gradient_by_life(const Allocation& allocation, const Span& span) const {
    return span.phase == Phase::backward && phase_is_over(span) && !dies_in_phase(allocation) &&
           !structure_.traits(allocation.stack).has(Trait::recompute);
  }

  [[nodiscard]] bool is_model(const Allocation& allocation, const Span& span) const {
    const StackRole role = structure_.traits(allocation.stack).role;
    return (span.phase == Phase::load || span.phase == Phase::next_model) && role != StackRole::user &&
           role != StackRole::none;
  }

  // What the loss works on has the size of the logits: the largest size born in a loss, and its half (bf16 logits that
  // the loss upcasts).
  void learn_logits() {
    for (const Allocation& allocation : timeline_.allocations) {
      if (allocation.begin == kNoEvent || birth(allocation).phase != Phase::loss) continue;
      constexpr int64_t kTooSmall = 1 << 20;
      if (allocation.requested < kTooSmall) continue;
      int64_t& largest = logits_sizes_[birth(allocation).pass];
      largest = std::max(largest, allocation.requested);
    }
  }

  [[nodiscard]] bool is_logits_size(const Allocation& allocation, uint32_t pass) const {
    const auto found = logits_sizes_.find(pass);
    if (found == logits_sizes_.end()) return false;
    return allocation.requested == found->second || allocation.requested * 2 == found->second;
  }

  // A library asks once for each handle and stream and never frees: so at most the first of each stream and size in
  // forward and in backward, and only where its stack keeps no other block of that size. Those of the last pass do not
  // count beside an older one: gradients of the last step, activations of a pass that failed.
  void learn_workspaces() {
    const uint32_t last = structure_.passes.empty() ? kNoPass : static_cast<uint32_t>(structure_.passes.size() - 1);
    struct Kept {
      int64_t before = 0;   // born before the last pass
      int64_t in_last = 0;  // born in it
    };
    std::map<std::tuple<StackId, uint32_t, int64_t>, Kept> kept;  // by stack, stream, size
    std::vector<uint32_t> candidates;
    for (uint32_t i = 0; i < timeline_.allocations.size(); ++i) {
      const Allocation& allocation = timeline_.allocations[i];
      if (!is_workspace_size(allocation.requested) || dies(allocation)) continue;
      if (allocation.begin == kNoEvent) {
        start_workspaces_[{allocation.stream_index, allocation.requested}] += 1;
        continue;
      }
      const Span& span = birth(allocation);
      if (span.phase != Phase::forward && span.phase != Phase::backward) continue;
      Kept& same = kept[{allocation.stack, allocation.stream_index, allocation.requested}];
      (span.pass == last ? same.in_last : same.before) += 1;
      candidates.push_back(i);
    }
    std::set<std::tuple<Phase, uint32_t, int64_t>> found;
    for (uint32_t id : candidates) {
      const Allocation& allocation = timeline_.allocations[id];
      const Kept& same = kept[{allocation.stack, allocation.stream_index, allocation.requested}];
      const bool alone = same.before == 1 || (same.before == 0 && same.in_last == 1);
      if (!alone) continue;
      const bool first = found.insert({birth(allocation).phase, allocation.stream_index, allocation.requested}).second;
      if (first) workspaces_.insert(allocation.begin);
    }
  }

  [[nodiscard]] bool is_workspace(const Allocation& allocation) const {
    return workspaces_.count(allocation.begin) > 0;
  }

  // cuBLAS keeps one workspace a stream. On the first stream its size may be a parameter's as well.
  void learn_streams() {
    kept_on_stream_.resize(trace_.streams.size());
    for (const Allocation& allocation : timeline_.allocations) {
      if (is_kept_on_further_stream(allocation)) kept_on_stream_[allocation.stream_index] += 1;
    }
  }

  [[nodiscard]] bool is_kept_on_further_stream(const Allocation& allocation) const {
    const bool is_further = allocation.stream_index != timeline_.allocations[0].stream_index;
    return allocation.begin != kNoEvent && is_further && is_main_workspace(allocation.requested) && !dies(allocation);
  }

  [[nodiscard]] static int64_t count_of(const std::unordered_map<int64_t, int64_t>& sizes, int64_t size) {
    const auto found = sizes.find(size);
    return found == sizes.end() ? 0 : found->second;
  }

  [[nodiscard]] bool is_parameter_size(int64_t size) const {
    return count_of(model_sizes_, size) > 0 || count_of(gradient_sizes_, size) > 0;
  }

  // --- born in the recording ---------------------------------------------------------------------------------------

  [[nodiscard]] AllocationCategory born(const Allocation& allocation) {
    if (!timeline_.pools[allocation.pool_index].is_default()) {
      return is(Category::graph_pool, CategoryReason::private_pool, Sure::high);
    }
    const StackTraits& traits = structure_.traits(allocation.stack);
    const Span& span = birth(allocation);
    if (traits.has(Trait::library_workspace)) {
      return is(Category::workspace, CategoryReason::library_frames, Sure::high);
    }
    switch (traits.role) {
      case StackRole::model: return is(Category::parameter, CategoryReason::model_frames, Sure::high);
      case StackRole::file_load: return from_file(allocation);
      case StackRole::copy:
      case StackRole::state_dict: return is(Category::parameter, CategoryReason::copy_frames, Sure::medium);
      case StackRole::zero_grad: return is(Category::gradient, CategoryReason::optimizer_frames, Sure::high);
      default: break;
    }
    if (is_kept_on_further_stream(allocation) && kept_on_stream_[allocation.stream_index] == 1) {
      return is(Category::workspace, CategoryReason::kept_by_library, Sure::medium);
    }
    if (traits.has(Trait::distributed) && !traits.has(Trait::module_call) && !is_short_lived(allocation)) {
      return is(Category::communication, CategoryReason::distributed_frames, Sure::medium);
    }
    switch (span.phase) {
      case Phase::optimizer_step: return in_optimizer(allocation, traits);
      case Phase::backward: return in_backward(allocation, span, traits);
      case Phase::forward: return in_forward(allocation, span, traits);
      case Phase::loss: return in_loss(allocation, span);
      case Phase::load:
      case Phase::next_model: return is(Category::parameter, CategoryReason::lives_through, Sure::medium);
      default: return outside(allocation, span);
    }
  }

  // A checkpoint holds each parameter once, then the optimizer's state.
  [[nodiscard]] AllocationCategory from_file(const Allocation& allocation) {
    const int64_t nth = ++read_sizes_[allocation.requested];
    const int64_t parameters =
        std::max(count_of(model_sizes_, allocation.requested), count_of(gradient_sizes_, allocation.requested));
    if (parameters > 0 && nth > parameters) {
      return is(Category::optimizer_state, CategoryReason::file_frames, Sure::medium);
    }
    return is(Category::parameter, CategoryReason::file_frames, Sure::medium);
  }

  [[nodiscard]] AllocationCategory in_optimizer(const Allocation& allocation, const StackTraits& traits) const {
    if (is_short_lived(allocation)) return is(Category::temporary, CategoryReason::dies_in_phase, Sure::high);
    if (traits.has(Trait::optimizer_state)) {
      return is(Category::optimizer_state, CategoryReason::optimizer_frames, Sure::high);
    }
    const bool over = phase_is_over(birth(allocation));
    if (over) return is(Category::optimizer_state, CategoryReason::survives_step, Sure::high);
    // The recording ends inside the step. PyTorch's own optimizers make their state elsewhere.
    if (traits.has(Trait::own_optimizer) && is_parameter_size(allocation.requested)) {
      return is(Category::optimizer_state, CategoryReason::size_of_parameter, Sure::medium);
    }
    return is(Category::temporary, CategoryReason::dies_in_phase, Sure::low);
  }

  [[nodiscard]] AllocationCategory in_backward(const Allocation& allocation, const Span& span,
                                               const StackTraits& traits) const {
    if (traits.has(Trait::recompute)) {
      return is_short_lived(allocation) && traits.has(Trait::module_call) && !dies_late(allocation, span)
                 ? is(Category::temporary, CategoryReason::dies_in_phase, Sure::low)
                 : is(Category::activation, CategoryReason::recomputed, Sure::high);
    }
    const bool over = phase_is_over(span);
    if (over && !dies_in_phase(allocation)) {
      if (is_parameter_size(allocation.requested) && count_of(model_sizes_, allocation.requested) > 0) {
        return is(Category::gradient, CategoryReason::size_of_parameter, Sure::high);
      }
      if (is_workspace(allocation)) return is(Category::workspace, CategoryReason::kept_by_library, Sure::medium);
      return is(Category::gradient, CategoryReason::survives_backward, Sure::medium);
    }
    if (is_logits_size(allocation, span.pass) && allocation.stack == StackId::none) {
      return is(Category::logits, CategoryReason::size_of_logits, Sure::medium);
    }
    if (dies_in_phase(allocation)) return is(Category::temporary, CategoryReason::dies_in_phase, Sure::high);
    // The recording ends in this backward.
    if (is_parameter_size(allocation.requested)) {
      return is(Category::gradient, CategoryReason::size_of_parameter, Sure::medium);
    }
    if (is_workspace(allocation)) return is(Category::workspace, CategoryReason::kept_by_library, Sure::medium);
    return is(Category::temporary, CategoryReason::dies_in_phase, Sure::low);
  }

  // Recomputed blocks that backward still reads live on behind the recomputation itself; what dies between two requests
  // of forward was scratch.
  [[nodiscard]] bool dies_late(const Allocation& allocation, const Span& span) const {
    if (!dies(allocation)) return true;
    const uint32_t limit = std::min(allocation.free_requested, span.end);
    for (uint32_t i = allocation.begin + 1; i < limit && i < allocation.begin + kNear; ++i) {
      if (trace_.action[i] == Action::alloc && !structure_.traits(trace_.stack[i]).has(Trait::recompute)) return true;
    }
    return limit >= allocation.begin + kNear;
  }

  [[nodiscard]] AllocationCategory in_forward(const Allocation& allocation, const Span& span,
                                              const StackTraits& traits) const {
    if (is_logits_size(allocation, span.pass)) {
      return is(Category::logits, CategoryReason::size_of_logits, Sure::medium);
    }
    if (is_short_lived(allocation)) {
      const bool at_once = dies(allocation) && allocation.free_requested == allocation.begin + 1;
      if (at_once && traits.has(Trait::convolution)) {
        return is(Category::workspace, CategoryReason::freed_at_once, Sure::medium);
      }
      return is(Category::temporary, CategoryReason::dies_in_phase, Sure::high);
    }
    if (is_workspace(allocation)) return is(Category::workspace, CategoryReason::kept_by_library, Sure::medium);
    return is(Category::activation, CategoryReason::kept_for_backward, Sure::high);
  }

  [[nodiscard]] AllocationCategory in_loss(const Allocation& allocation, const Span& span) const {
    if (is_logits_size(allocation, span.pass)) return is(Category::logits, CategoryReason::loss_frames, Sure::high);
    if (is_short_lived(allocation)) return is(Category::temporary, CategoryReason::dies_in_phase, Sure::high);
    return is(Category::logits, CategoryReason::loss_frames, Sure::medium);
  }

  [[nodiscard]] AllocationCategory outside(const Allocation& allocation, const Span& span) const {
    const bool lives_on = !dies(allocation);
    const bool before_all = structure_.passes.empty() || allocation.begin < structure_.passes.front().begin;
    if (before_all && lives_on && count_of(gradient_sizes_, allocation.requested) > 0) {
      return is(Category::parameter, CategoryReason::size_of_gradient, Sure::medium);
    }
    if (structure_.passes.empty()) return {};
    if (span.phase == Phase::data_loading) return is(Category::input, CategoryReason::made_for_pass, Sure::medium);
    if (dies_in_phase(allocation)) return is(Category::temporary, CategoryReason::dies_in_phase, Sure::medium);
    return {};
  }

  // --- blocks of the start -----------------------------------------------------------------------------------------

  void categorize_start() {
    std::unordered_map<int64_t, int64_t> seen;  // blocks of a size that outlive everything
    for (uint32_t i = 0; i < out_.size(); ++i) {
      const Allocation& allocation = timeline_.allocations[i];
      if (allocation.begin == kNoEvent) out_[i] = of_start(allocation, seen);
    }
  }

  [[nodiscard]] AllocationCategory of_start(const Allocation& allocation,
                                            std::unordered_map<int64_t, int64_t>& seen) const {
    if (!timeline_.pools[allocation.pool_index].is_default()) {
      return is(Category::graph_pool, CategoryReason::private_pool, Sure::high);
    }
    const int64_t gradients = count_of(gradient_sizes_, allocation.requested);
    if (dies(allocation)) {
      const Span& death = structure_.span_at(allocation.free_requested);
      if (gradients > 0 && (death.phase == Phase::between_steps || death.phase == Phase::optimizer_step)) {
        return is(Category::gradient, CategoryReason::size_of_parameter, Sure::medium);
      }
      if (structure_.trains || !structure_.passes.empty()) {
        const bool early = death.phase == Phase::forward || death.phase == Phase::data_loading;
        return early ? is(Category::input, CategoryReason::made_for_pass, Sure::low)
                     : is(Category::activation, CategoryReason::kept_for_backward, Sure::low);
      }
      return {};
    }
    if (gradients > 0) {
      const int64_t nth = ++seen[allocation.requested];
      const bool made_here = count_of(state_sizes_, allocation.requested) > 0;
      if (nth <= gradients || made_here) return is(Category::parameter, CategoryReason::size_of_gradient, Sure::medium);
      return is(Category::optimizer_state, CategoryReason::size_of_gradient, Sure::medium);
    }
    const auto of_size = start_workspaces_.find({allocation.stream_index, allocation.requested});
    if (of_size != start_workspaces_.end() && of_size->second <= kHandles && structure_.trains) {
      return is(Category::workspace, CategoryReason::kept_by_library, Sure::low);
    }
    if (structure_.passes.empty()) return {};
    return is(Category::parameter, CategoryReason::lives_through, Sure::low);
  }

  // A snapshot without events: what its blocks' stacks say.
  void categorize_without_history() {
    for (uint32_t i = 0; i < out_.size(); ++i) {
      const Allocation& allocation = timeline_.allocations[i];
      if (!timeline_.pools[allocation.pool_index].is_default()) {
        out_[i] = is(Category::graph_pool, CategoryReason::private_pool, Sure::high);
      } else if (structure_.traits(allocation.stack).role == StackRole::model) {
        out_[i] = is(Category::parameter, CategoryReason::model_frames, Sure::medium);
      } else if (structure_.traits(allocation.stack).has(Trait::optimizer_state)) {
        out_[i] = is(Category::optimizer_state, CategoryReason::optimizer_frames, Sure::medium);
      }
    }
  }

  static constexpr uint32_t kNear = 64;  // events that are looked at behind a recomputed block

  const Timeline& timeline_;
  const Trace& trace_;
  const Structure& structure_;
  std::vector<AllocationCategory> out_;
  uint32_t end_of_work_ = 0;                             // event: the last request, or where the last span begins
  std::vector<StackHistory> histories_;                  // by StackId
  std::unordered_map<int64_t, int64_t> gradient_sizes_;  // of one step: size -> how many
  std::unordered_map<int64_t, int64_t> model_sizes_;     // born where modules are made or moved
  std::unordered_map<int64_t, int64_t> state_sizes_;     // born in optimizer steps and kept
  std::unordered_map<int64_t, int64_t> read_sizes_;      // read from files so far
  std::unordered_map<uint32_t, int64_t> logits_sizes_;   // pass -> bytes
  std::unordered_set<uint32_t> workspaces_;              // alloc events of what a library keeps
  std::map<std::pair<uint32_t, int64_t>, int64_t> start_workspaces_;  // (stream, size) of one, there from the start
  std::vector<int64_t> kept_on_stream_;  // by stream: blocks of a workspace's size, never freed
};

}  // namespace

std::string_view name_of(Category category) {
  switch (category) {
    case Category::parameter: return "parameter";
    case Category::gradient: return "gradient";
    case Category::optimizer_state: return "optimizer state";
    case Category::activation: return "activation";
    case Category::input: return "input";
    case Category::logits: return "logits/loss";
    case Category::temporary: return "temporary";
    case Category::workspace: return "workspace";
    case Category::communication: return "communication buffer";
    case Category::graph_pool: return "graph pool";
    case Category::unknown: return "unknown";
  }
  return "unknown";
}

std::string_view name_of(CategoryReason reason) {
  switch (reason) {
    case CategoryReason::none: return "none";
    case CategoryReason::model_frames: return "model-frames";
    case CategoryReason::file_frames: return "file-frames";
    case CategoryReason::copy_frames: return "copy-frames";
    case CategoryReason::size_of_gradient: return "size-of-gradient";
    case CategoryReason::lives_through: return "lives-through";
    case CategoryReason::optimizer_frames: return "optimizer-frames";
    case CategoryReason::survives_step: return "survives-step";
    case CategoryReason::dies_in_phase: return "dies-in-phase";
    case CategoryReason::survives_backward: return "survives-backward";
    case CategoryReason::size_of_parameter: return "size-of-parameter";
    case CategoryReason::kept_for_backward: return "kept-for-backward";
    case CategoryReason::recomputed: return "recomputed";
    case CategoryReason::loss_frames: return "loss-frames";
    case CategoryReason::size_of_logits: return "size-of-logits";
    case CategoryReason::made_for_pass: return "made-for-pass";
    case CategoryReason::library_frames: return "library-frames";
    case CategoryReason::kept_by_library: return "kept-by-library";
    case CategoryReason::freed_at_once: return "freed-at-once";
    case CategoryReason::distributed_frames: return "distributed-frames";
    case CategoryReason::private_pool: return "private-pool";
  }
  return "none";
}

std::vector<AllocationCategory> find_categories(const Timeline& timeline, const Structure& structure) {
  return Categorizer(timeline, structure).run();
}

CategorySums sum_categories(const Timeline& timeline, const std::vector<AllocationCategory>& categories,
                            uint32_t event) {
  CategorySums sums;
  CategoryBytes now{};
  int64_t rounding = 0;
  const auto add = [&](uint32_t id, int64_t sign) {
    const Allocation& allocation = timeline.allocations[id];
    if (allocation.size == 0) return;  // a ghost that the recording contradicts: it holds nothing
    now[static_cast<size_t>(categories[id].category)] += sign * allocation.requested;
    rounding += sign * (allocation.size - allocation.requested);
  };
  for (uint32_t i = 0; i < timeline.allocations.size(); ++i) {
    if (timeline.allocations[i].begin == kNoEvent) add(i, 1);
  }
  sums.most = now;
  sums.at = now;
  sums.rounding_most = sums.rounding_at = rounding;
  const Trace& trace = timeline.trace();
  for (uint32_t i = 0; i < trace.size_events(); ++i) {
    const uint32_t id = timeline.allocation_of[i];
    if (id != kNoAllocation && trace.action[i] == Action::alloc) {
      add(id, 1);
      const size_t category = static_cast<size_t>(categories[id].category);
      if (now[category] > sums.most[category]) {
        sums.most[category] = now[category];
        sums.most_at[category] = i;
      }
      if (rounding > sums.rounding_most) {
        sums.rounding_most = rounding;
        sums.rounding_most_at = i;
      }
    } else if (id != kNoAllocation && i == timeline.allocations[id].free_completed) {
      add(id, -1);
    }
    if (i == event) {
      sums.at = now;
      sums.rounding_at = rounding;
    }
  }
  return sums;
}

}  // namespace oomscope
