// Note [How spans are found]
//
// 1. Every request gets a raw phase: of an annotation that is open at its time (optimizer step, zero_grad, a user's
//    phase), else of its stack's role. A request without frames is backward's if others have frames. Frees follow the
//    request before them, but for those whose own stack says zero_grad or that lie in an annotated zero_grad.
// 2. Equal raw phases side by side are one span. A span of requests outside of modules ("user") is named by its
//    neighbours: between forward and backward it computes the loss, before forward it makes the batch, after an
//    optimizer step it is between steps.
// 3. A pass begins with a span of forward, takes loss and backward that follow, and ends where another forward begins
//    after anything else than more forward from the same line of the program.
//
//      toks | forward ........ | loss | backward (no frames) | step | zero_grad | toks | forward ...
//      data   pass 0 ------------------------------------->    step 1 ends -^     data   pass 1
//
// 4. A step ends with a run of optimizer spans (several optimizers step one after another) and the zero_grad behind it.
//
// Where no stack was recorded at all, annotated optimizer steps alone part the run, and what lies between two of them
// is forward up to the highest live bytes and backward from there.
#include "model/structure.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/text.h"

namespace oomscope {
namespace {

// Raw phases are Phase values, and two more that only exist until the spans are named.
constexpr uint8_t kUser = 0xfe;
constexpr uint8_t kZeroGrad = 0xfd;
constexpr uint8_t kUnset = 0xff;

constexpr uint8_t raw(Phase phase) { return static_cast<uint8_t>(phase); }

// What an annotation's name says; kUnset: nothing that we know.
uint8_t phase_of_annotation(std::string_view name) {
  constexpr std::string_view kPhaseMark = "oomscope.phase:";
  if (name.starts_with("Optimizer.step#")) return raw(Phase::optimizer_step);
  if (name.starts_with("Optimizer.zero_grad#")) return kZeroGrad;
  if (name.starts_with("enumerate(DataLoader)")) return raw(Phase::data_loading);
  if (!name.starts_with(kPhaseMark)) return kUnset;
  name.remove_prefix(kPhaseMark.size());
  for (uint8_t i = 0; i <= raw(Phase::next_model); ++i) {
    if (name == name_of(static_cast<Phase>(i))) return i;
  }
  if (name == "optimizer") return raw(Phase::optimizer_step);
  if (contains(name, "valid") || contains(name, "eval")) return raw(Phase::evaluation);
  return kUnset;
}

uint8_t phase_of_role(StackRole role) {
  switch (role) {
    case StackRole::none: return kUnset;
    case StackRole::user: return kUser;
    case StackRole::forward: return raw(Phase::forward);
    case StackRole::loss: return raw(Phase::loss);
    case StackRole::backward: return raw(Phase::backward);
    case StackRole::optimizer: return raw(Phase::optimizer_step);
    case StackRole::zero_grad: return kZeroGrad;
    case StackRole::model: return raw(Phase::load);
    case StackRole::file_load: return raw(Phase::resume);
    case StackRole::copy: return raw(Phase::between_steps);
    case StackRole::state_dict: return raw(Phase::saving);
    case StackRole::data: return raw(Phase::data_loading);
  }
  return kUnset;
}

// The annotations that are open, in the order in which they began; they may end in any order.
class OpenMarks {
 public:
  void push(uint8_t phase) {
    of_phase_[phase].push_back(open_.size());
    open_.push_back(phase);
  }
  // The innermost of that phase; nothing, if its start was not recorded.
  void close(uint8_t phase) {
    std::vector<size_t>& same = of_phase_[phase];
    if (same.empty()) return;
    open_[same.back()] = kUnset;
    same.pop_back();
    while (!open_.empty() && open_.back() == kUnset) open_.pop_back();
  }
  [[nodiscard]] uint8_t innermost() const { return open_.empty() ? kUnset : open_.back(); }

 private:
  std::vector<uint8_t> open_;  // phases; kUnset: ended before one further out
  std::array<std::vector<size_t>, 256> of_phase_;
};

class StructureFinder {
 public:
  explicit StructureFinder(const Timeline& timeline)
      : timeline_(timeline), trace_(timeline.trace()), snapshot_(*timeline.snapshot) {}

  Structure run() {
    out_.stacks = stack_traits(snapshot_);
    read_annotations();
    count_requests();
    make_spans();
    name_spans();
    if (!out_.has_frames) split_at_peaks();
    find_passes();
    number_steps();
    judge();
    return std::move(out_);
  }

 private:
  struct Mark {
    int64_t time_us;
    bool is_start;
    uint8_t phase;
  };

  void read_annotations() {
    for (const Annotation& annotation : snapshot_.annotations) {
      if (annotation.device != timeline_.device && annotation.device != Annotation::kAllDevices) continue;
      const std::string_view name = snapshot_.strings.text(annotation.name);
      const uint8_t phase = phase_of_annotation(name);
      if (phase != kUnset) marks_.push_back(Mark{annotation.time_us, annotation.is_start, phase});
      if (annotation.is_start && marked_step(name)) step_marks_.push_back(annotation.time_us);
      if (phase == raw(Phase::optimizer_step)) has_optimizer_marks_ = true;
    }
    std::stable_sort(marks_.begin(), marks_.end(), [](const Mark& a, const Mark& b) { return a.time_us < b.time_us; });
    std::sort(step_marks_.begin(), step_marks_.end());
  }

  void count_requests() {
    for (size_t i = 0; i < trace_.size_events(); ++i) {
      if (trace_.action[i] != Action::alloc) continue;
      out_.requests += 1;
      const bool python = out_.traits(trace_.stack[i]).has(Trait::python);
      out_.has_frames = out_.has_frames || python;
      out_.frameless_requests += python ? 0 : 1;
    }
  }

  // Opens and closes annotations up to `time_us`; the innermost open one counts. A step that began and ended without a
  // request in it still parts the spans.
  void advance_marks(int64_t time_us, uint32_t event) {
    while (next_mark_ < marks_.size() && marks_[next_mark_].time_us <= time_us) {
      const Mark& mark = marks_[next_mark_++];
      if (mark.is_start) {
        open_.push(mark.phase);
        if (mark.phase == raw(Phase::optimizer_step)) begin_span(mark.phase, event);  // also of a step without requests
      } else {
        open_.close(mark.phase);
      }
    }
  }

  [[nodiscard]] uint8_t phase_of_request(size_t event) {
    const StackTraits& traits = out_.traits(trace_.stack[event]);
    const uint8_t open = open_.innermost();
    if (open != kUnset && traits.role != StackRole::forward && traits.role != StackRole::loss) return open;
    if (open != kUnset && open != raw(Phase::optimizer_step) && open != kZeroGrad) return open;
    if (traits.role == StackRole::none) {
      return out_.has_frames ? raw(Phase::backward) : current_ == kUnset ? raw(Phase::unknown) : after_frameless();
    }
    // A state_dict is copied to be saved or kept; a module, whose tensors are Parameters, to go on with.
    if (traits.role == StackRole::copy && !traits.has(Trait::parameter_copy)) return raw(Phase::saving);
    return phase_of_role(traits.role);
  }

  // Without any frames: what follows an optimizer step or zero_grad is something else again.
  [[nodiscard]] uint8_t after_frameless() const {
    const bool stepped = current_ == raw(Phase::optimizer_step) || current_ == kZeroGrad;
    return stepped ? raw(Phase::unknown) : current_;
  }

  struct RawSpan {
    uint8_t phase = kUnset;
    uint32_t begin = 0;
    uint32_t caller = 0;  // of the first request inside a module
    StackId first_stack = StackId::none;
  };

  void begin_span(uint8_t phase, uint32_t event) {
    current_ = phase;
    // A step that asked for nothing is a span without events.
    const bool is_empty = !raw_.empty() && raw_.back().begin == event;
    if (is_empty && raw_.back().phase != raw(Phase::optimizer_step)) raw_.pop_back();
    raw_.push_back(RawSpan{.phase = phase, .begin = event});
  }

  // The same model called from another line: validation behind training, say.
  [[nodiscard]] bool begins_new_call(uint8_t phase, const StackTraits& traits) const {
    return phase == raw(Phase::forward) && !raw_.empty() && raw_.back().caller != 0 && traits.has(Trait::module_call) &&
           raw_.back().caller != traits.caller;
  }

  void make_spans() {
    const uint32_t events = static_cast<uint32_t>(trace_.size_events());
    for (uint32_t i = 0; i < events; ++i) {
      if (next_mark_ < marks_.size() && trace_.time_at(i) != 0) advance_marks(trace_.time_at(i), i);
      const Action action = trace_.action[i];
      const StackTraits& traits = out_.traits(trace_.stack[i]);
      if (action == Action::free_requested) {
        const bool clears = traits.role == StackRole::zero_grad || open_.innermost() == kZeroGrad;
        if (clears && current_ != kZeroGrad) begin_span(kZeroGrad, i);
        continue;
      }
      if (action != Action::alloc && action != Action::oom) continue;
      const uint8_t phase = phase_of_request(i);
      if (raw_.empty() || phase != current_ || begins_new_call(phase, traits)) begin_span(phase, i);
      if (!traits.has(Trait::module_call)) continue;
      RawSpan& span = raw_.back();
      if (span.caller == 0) {
        span.caller = traits.caller;
        span.first_stack = trace_.stack[i];
      }
    }
    if (raw_.empty()) raw_.push_back(RawSpan{.phase = raw(Phase::unknown)});
    raw_.front().begin = 0;
  }

  // --- names -------------------------------------------------------------------------------------------------------

  // By raw span: the phase of the next one behind it that tells; kUnset if none does.
  [[nodiscard]] std::vector<uint8_t> next_known() const {
    std::vector<uint8_t> next(raw_.size(), kUnset);
    for (size_t i = raw_.size(); i-- > 1;) {
      const uint8_t phase = raw_[i].phase;
      next[i - 1] = phase != kUser && phase != kZeroGrad ? phase : next[i];
    }
    return next;
  }

  // A span of requests outside of modules, by what it lies between. `before`: the last span that is named.
  [[nodiscard]] Phase phase_between(uint8_t before, uint8_t after, bool saw_forward) const {
    const bool computed = before == raw(Phase::forward) || before == raw(Phase::loss);
    if (computed && after != raw(Phase::forward) && (after == raw(Phase::backward) || out_.trains)) return Phase::loss;
    if (after == raw(Phase::forward)) return Phase::data_loading;
    if (before == raw(Phase::load)) return Phase::load;
    if (saw_forward && steps_) return Phase::between_steps;
    return Phase::unknown;
  }

  void name_spans() {
    for (const RawSpan& span : raw_) {
      const bool trains = span.phase == raw(Phase::optimizer_step) || span.phase == raw(Phase::backward);
      out_.trains = out_.trains || trains;
      steps_ = steps_ || span.phase == raw(Phase::optimizer_step);
    }
    const uint32_t events = static_cast<uint32_t>(trace_.size_events());
    const std::vector<uint8_t> next = next_known();
    uint8_t before = kUnset;
    bool saw_forward = false;
    for (size_t i = 0; i < raw_.size(); ++i) {
      uint8_t phase = raw_[i].phase;
      saw_forward = saw_forward || phase == raw(Phase::forward);
      if (phase == kZeroGrad) {
        phase = raw(Phase::between_steps);
      } else if (phase == kUser) {
        phase = raw(phase_between(before, next[i], saw_forward));
      } else if (phase == raw(Phase::load) && saw_forward) {
        phase = raw(Phase::next_model);
      }
      const uint32_t end = i + 1 < raw_.size() ? raw_[i + 1].begin : events;
      out_.spans.push_back(
          Span{.phase = static_cast<Phase>(phase), .begin = raw_[i].begin, .end = end, .pass = kNoPass, .step = 1});
      if (raw_[i].phase != kZeroGrad) before = phase;
    }
  }

  // --- without frames ----------------------------------------------------------------------------------------------

  // Between two optimizer steps memory rises through forward and falls through backward.
  void split_at_peaks() {
    if (!has_optimizer_marks_) return;
    std::vector<Span> split;
    std::vector<RawSpan> raw_split;
    for (size_t i = 0; i < out_.spans.size(); ++i) {
      const Span& span = out_.spans[i];
      const bool steps_next = i + 1 < out_.spans.size() && out_.spans[i + 1].phase == Phase::optimizer_step;
      if (span.phase != Phase::unknown || !steps_next) {
        split.push_back(span);
        raw_split.push_back(raw_[i]);
        continue;
      }
      const uint32_t top = highest(span.begin, span.end);
      split.push_back(span);
      split.back().phase = Phase::forward;
      split.back().end = top;
      raw_split.push_back(raw_[i]);
      split.push_back(span);
      split.back().phase = Phase::backward;
      split.back().begin = top;
      raw_split.push_back(RawSpan{.phase = raw(Phase::backward), .begin = top});
    }
    out_.spans = std::move(split);
    raw_ = std::move(raw_split);
  }

  [[nodiscard]] uint32_t highest(uint32_t begin, uint32_t end) const {
    int64_t live = 0;
    int64_t most = 0;
    uint32_t top = end;
    for (uint32_t i = begin; i < end; ++i) {
      if (trace_.action[i] == Action::alloc) live += trace_.size[i];
      if (trace_.action[i] == Action::free_requested) live -= trace_.size[i];
      if (live > most) {
        most = live;
        top = i + 1;
      }
    }
    return top;
  }

  // --- passes and steps --------------------------------------------------------------------------------------------

  void find_passes() {
    bool open = false;  // the last pass may still take a backward
    for (size_t i = 0; i < out_.spans.size(); ++i) {
      Span& span = out_.spans[i];
      switch (span.phase) {
        case Phase::forward:
          if (!open || !continues(i)) begin_pass(i);
          open = true;
          extend(span);
          break;
        case Phase::loss:
          if (open && !out_.passes.back().has_backward) extend(span);
          break;
        case Phase::backward:
          if (!open) break;
          span.pass = static_cast<uint32_t>(out_.passes.size() - 1);
          out_.passes.back().has_backward = true;
          out_.passes.back().end = span.end;
          break;
        case Phase::between_steps: break;  // zero_grad may come between loss and backward
        default: open = false;
      }
    }
  }

  // More of the same call: forward that goes on behind the loss, as models do that compute it inside.
  [[nodiscard]] bool continues(size_t span) const {
    const Pass& pass = out_.passes.back();
    const bool follows = span > 0 && out_.spans[span - 1].pass == out_.passes.size() - 1;
    return follows && !pass.has_backward && raw_[span].caller == pass.caller &&
           raw_[span].first_stack != pass.first_stack;
  }

  void begin_pass(size_t span) {
    const RawSpan& first = raw_[span];
    out_.passes.push_back(Pass{.begin = out_.spans[span].begin,
                               .forward_end = out_.spans[span].end,
                               .end = out_.spans[span].end,
                               .has_backward = false,
                               .caller = first.caller,
                               .call = out_.traits(first.first_stack).call,
                               .first_stack = first.first_stack,
                               .step = 1,
                               .says_evaluation = out_.traits(first.first_stack).has(Trait::evaluation)});
  }

  void extend(Span& span) {
    Pass& pass = out_.passes.back();
    span.pass = static_cast<uint32_t>(out_.passes.size() - 1);
    pass.forward_end = span.end;
    pass.end = span.end;
  }

  void number_steps() {
    find_step_ends();
    size_t next = 0;
    for (Span& span : out_.spans) {
      while (next < out_.step_ends.size() && out_.step_ends[next] <= span.begin) ++next;
      span.step = static_cast<int>(next) + 1;
    }
    for (Pass& pass : out_.passes) {
      const auto behind = std::upper_bound(out_.step_ends.begin(), out_.step_ends.end(), pass.begin);
      pass.step = static_cast<int>(behind - out_.step_ends.begin()) + 1;
    }
    out_.span_of.resize(trace_.size_events());
    for (uint32_t i = 0; i < out_.spans.size(); ++i) {
      std::fill(out_.span_of.begin() + out_.spans[i].begin, out_.span_of.begin() + out_.spans[i].end, i);
    }
  }

  void find_step_ends() {
    if (step_marks_.size() > 1) {
      for (size_t i = 1; i < step_marks_.size(); ++i) {
        const auto found = std::lower_bound(trace_.time_us.begin(), trace_.time_us.end(), step_marks_[i]);
        out_.step_ends.push_back(static_cast<uint32_t>(found - trace_.time_us.begin()));
      }
      return;
    }
    bool stepping = false;
    for (const Span& span : out_.spans) {
      if (span.phase == Phase::optimizer_step) {
        stepping = true;
      } else if (stepping && span.phase != Phase::between_steps && span.phase != Phase::unknown) {
        out_.step_ends.push_back(span.begin);
        stepping = false;
      }
    }
    if (stepping) out_.step_ends.push_back(static_cast<uint32_t>(trace_.size_events()));
  }

  void judge() {
    for (size_t i = 0; i < trace_.size_events(); ++i) {
      if (trace_.action[i] != Action::alloc || out_.traits(trace_.stack[i]).has(Trait::python)) continue;
      const Span& span = out_.span_at(static_cast<uint32_t>(i));
      if (span.phase == Phase::backward && span.pass != kNoPass) out_.frameless_placed += 1;
    }
    if (out_.has_frames && !out_.passes.empty()) {
      out_.confidence = has_optimizer_marks_ || !out_.trains ? Confidence::high : Confidence::medium;
    } else if (has_optimizer_marks_) {
      out_.confidence = Confidence::medium;
    }
  }

  const Timeline& timeline_;
  const Trace& trace_;
  const Snapshot& snapshot_;
  Structure out_;
  std::vector<Mark> marks_;
  std::vector<int64_t> step_marks_;
  bool has_optimizer_marks_ = false;
  bool steps_ = false;  // an optimizer step was seen
  size_t next_mark_ = 0;
  OpenMarks open_;
  uint8_t current_ = kUnset;
  std::vector<RawSpan> raw_;
};

}  // namespace

std::optional<int64_t> marked_step(std::string_view annotation) {
  for (std::string_view prefix : {"oomscope.step:", "ProfilerStep#"}) {
    if (!annotation.starts_with(prefix)) continue;
    const std::string_view number = annotation.substr(prefix.size());
    int64_t step = 0;
    const std::from_chars_result read = std::from_chars(number.data(), number.data() + number.size(), step);
    if (read.ec == std::errc{} && read.ptr == number.data() + number.size()) return step;
  }
  return std::nullopt;
}

Structure find_structure(const Timeline& timeline) { return StructureFinder(timeline).run(); }

}  // namespace oomscope
