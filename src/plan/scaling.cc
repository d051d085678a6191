#include "plan/scaling.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "base/golden.h"
#include "base/source_path.h"
#include "model/structure.h"
#include "plan/conv_scratch.h"
#include "plan/values.h"
#include "types/recording_call.h"

namespace oomscope {
namespace {

// Requests whose stacks may differ between two runs of one program at two values: a fallback here and there.
constexpr double kMostUnmatched = 0.05;
// Without frames only order and sizes speak.
constexpr double kLeastMatchedFrameless = 0.8;
// Parameters that may have another size: a table of positions that grows with the sequence.
constexpr double kMostOtherParameters = 0.02;
// Scratch below is of the kernel, not of its data.
constexpr int64_t kSemaphoreBytes = 64 * 1024;
// How often the size of an operand tells a convolution's kernel.
constexpr double kDecided = 5.0 / 6;
// Less cannot move a peak.
constexpr int64_t kTellingBytes = int64_t{1} << 20;

// `why` is "error.recordings-differ.WHY".
Error differ(std::string_view why, const ScalingInput& a, const ScalingInput& b, Values values = {}) {
  values.emplace_back("why", "error.recordings-differ." + std::string(why));
  return Error{.code = "recordings-differ",
               .what = "error.recordings-differ",
               .where = a.path + ", " + b.path,
               .hint = "error.recordings-differ.hint",
               .values = std::move(values)};
}

int64_t bytes_asked(const RequestLog& log) {
  return std::accumulate(log.order.begin(), log.order.end(), int64_t{0},
                         [&](int64_t sum, uint32_t id) { return sum + log.requests.size[id]; });
}

Result<Done> check_recording(const ScalingInput& input, const RequestLog& log) {
  if (input.verification->timeline.trace().size_events() == 0) {
    return Error{.code = "no-history",
                 .what = "error.no-history-to-scale",
                 .where = input.path,
                 .hint = "error.no-history.hint",
                 .values = {{"call", recording_call(*input.verification->timeline.snapshot)}}};
  }
  const bool died = !log.requests.failures.empty() && log.requests.failures.back().last;
  if (died) {
    return Error{
        .code = "run-failed", .what = "error.run-failed", .where = input.path, .hint = "oomscope why " + input.path};
  }
  return Done{};
}

// Parameters have one size at every value, or it is another model.
Result<Done> check_parameters(const RequestLog& base, const RequestLog& other, const RequestMatch& match,
                              const Structure& structure, const ScalingInput& a, const ScalingInput& b) {
  int64_t parameters = 0;
  int64_t differing = 0;
  Values first;
  for (size_t i = 0; i < base.order.size(); ++i) {
    const Allocation& allocation = base.verification->timeline.allocations[base.order[i]];
    if (structure.traits(allocation.stack).role != StackRole::model || match.partner[i] == kNoMatch) continue;
    ++parameters;
    const int64_t size_a = base.requests.size[base.order[i]];
    const int64_t size_b = other.requests.size[other.order[match.partner[i]]];
    if (size_a == size_b) continue;
    if (differing++ == 0) first = {{"a", std::to_string(size_a)}, {"b", std::to_string(size_b)}};
  }
  if (static_cast<double>(differing) <= kMostOtherParameters * static_cast<double>(parameters) + 1) return Done{};
  return differ("model", a, b, std::move(first));
}

Result<Done> check_match(const RequestLog& base, const RequestMatch& match, const ScalingInput& a,
                         const ScalingInput& b) {
  const bool framed = match.framed > 0;
  const bool alike =
      framed ? static_cast<double>(match.framed_unmatched) <= kMostUnmatched * static_cast<double>(match.framed)
             : static_cast<double>(match.matched) >= kLeastMatchedFrameless * static_cast<double>(base.order.size());
  if (alike) return Done{};
  if (match.first.empty()) return differ("requests", a, b);
  const FirstDifference& first = match.first[0];
  if (first.count_base != first.count_other) {
    return differ("count", a, b,
                  {{"site", first.site_base},
                   {"count_a", std::to_string(first.count_base)},
                   {"count_b", std::to_string(first.count_other)}});
  }
  const auto event_text = [](uint32_t event) { return event == kNoEvent ? "?" : std::to_string(event); };
  return differ("first", a, b,
                {{"site_a", first.site_base},
                 {"event_a", event_text(first.event_base)},
                 {"site_b", first.site_other},
                 {"event_b", event_text(first.event_other)}});
}

Result<Done> check_settings(const ScalingInput& a, const ScalingInput& b) {
  if (a.verification->timeline.snapshot->features.event_pool_id !=
          b.verification->timeline.snapshot->features.event_pool_id ||
      a.verification->timeline.snapshot->features.host_segments !=
          b.verification->timeline.snapshot->features.host_segments) {
    return differ("versions", a, b);
  }
  if (a.verification->config.settings == b.verification->config.settings) return Done{};
  return differ("settings", a, b);
}

// Two quantities at once: one of them alone cannot be scaled by what both do. Where tokens are looked up, positions
// tell; images have sides, whose rows grow less than their squares do.
Result<Done> check_one_quantity(const RequestMatch& match, bool has_tokens, const ScalingInput& a,
                                const ScalingInput& b) {
  if (!match.other_growth || !has_tokens) return Done{};
  return differ(
      "two-quantities", a, b,
      {{"growth", fmt::format("{:.3g}", match.growth)}, {"other", fmt::format("{:.3g}", *match.other_growth)}});
}

// Where one quantity went up and another down, as batch and length at the same number of tokens, hardly anything that
// modules make has another size.
Result<Done> check_growth(const RequestLog& base, const RequestLog& other, const RequestMatch& match,
                          const Structure& structure, const ScalingInput& a, const ScalingInput& b) {
  constexpr int64_t kTensorBytes = 4096;
  constexpr int64_t kFew = 10;  // at most one of so many
  int64_t tensors = 0;
  int64_t growing = 0;
  for (size_t i = 0; i < base.order.size(); ++i) {
    const Allocation& allocation = base.verification->timeline.allocations[base.order[i]];
    if (match.partner[i] == kNoMatch || base.scratch[i]) continue;
    const int64_t size = base.requests.size[base.order[i]];
    if (size < kTensorBytes || !structure.traits(allocation.stack).has(Trait::module_call)) continue;
    ++tensors;
    growing += size != other.requests.size[other.order[match.partner[i]]] ? 1 : 0;
  }
  if (match.growth == 1 || tensors < kFew || growing * kFew >= tensors) return Done{};
  return differ("two-quantities", a, b, {{"growth", "1"}, {"other", fmt::format("{:.3g}", match.growth)}});
}

bool looks_up_tokens(const Snapshot& snapshot) {
  return std::any_of(snapshot.stacks.frames.begin(), snapshot.stacks.frames.end(), [&](const Frame& frame) {
    return snapshot.strings.text(frame.name) == "embedding" &&
           path_ends_with(snapshot.strings.text(frame.filename), "torch/nn/functional.py");
  });
}

// Sizes grow as the values do, or as their squares.
Result<Done> check_values(const FoundValues& found, const std::vector<double>& growth,
                          const std::vector<std::string>& paths) {
  constexpr double kTolerance = 0.25;
  for (size_t k = 0; found.source == ValueSource::given && k < growth.size(); ++k) {
    const double ratio = static_cast<double>(found.values.back()) / static_cast<double>(found.values[k]);
    const bool agrees =
        std::abs(growth[k] / ratio - 1) < kTolerance || std::abs(growth[k] / (ratio * ratio) - 1) < kTolerance;
    if (agrees) continue;
    return Error{.code = "values-wrong",
                 .what = growth[k] == 1 ? "error.values-of-one-size" : "error.values-disagree",
                 .where = paths[k] + ", " + paths.back(),
                 .hint = "error.values.hint",
                 .values = {{"ratio", fmt::format("{:.3g}", ratio)}, {"growth", fmt::format("{:.3g}", growth[k])}}};
  }
  return Done{};
}

// Do most sizes follow the square of the quantity, as with the side of an image?
bool follows_square(const RequestLog& base, const RequestLog& other, const RequestMatch& match, double ratio) {
  int64_t linear = 0;
  int64_t square = 0;
  for (size_t i = 0; i < base.order.size(); ++i) {
    if (match.partner[i] == kNoMatch) continue;
    const double from = static_cast<double>(other.requests.size[other.order[match.partner[i]]]);
    const double to = static_cast<double>(base.requests.size[base.order[i]]);
    if (from <= 0) continue;
    linear += std::abs(to / from - ratio) < 0.01 * ratio ? 1 : 0;
    square += std::abs(to / from - ratio * ratio) < 0.01 * ratio * ratio ? 1 : 0;
  }
  return square > 4 * linear;
}

class Modeller {
 public:
  Modeller(ScalingModel& model, const std::vector<const RequestLog*>& others, const std::vector<RequestMatch>& matches,
           const Structure& structure)
      : model_(model), others_(others), matches_(matches), structure_(structure) {}

  void run() {
    const RequestLog& base = model_.base;
    model_.sizes.assign(base.requests.size.size(), SizeModel{});
    for (size_t id = 0; id < model_.sizes.size(); ++id) {
      model_.sizes[id].constant = static_cast<double>(base.requests.size[id]);
    }
    std::vector<size_t> unseen;
    const bool may_be_square = has_squares();
    for (size_t i = 0; i < base.order.size(); ++i) {
      const std::vector<SizePoint> points = points_of(i);
      SizeModel& size = model_.sizes[base.order[i]];
      if (points.size() == 1) {
        unseen.push_back(i);
        continue;
      }
      size = fit_size(points, may_be_square);
      siblings_[base.requests.size[base.order[i]]].push_back(size);
    }
    fit_unseen(unseen);
    forecast_convolutions();
    fit_convolutions();
    find_guesses();
    find_unsure();
    count();
  }

 private:
  [[nodiscard]] double x_of(size_t recording) const {
    return std::pow(static_cast<double>(model_.values[recording]), model_.power);
  }

  [[nodiscard]] std::vector<SizePoint> points_of(size_t position) const {
    std::vector<SizePoint> points;
    for (size_t k = 0; k < others_.size(); ++k) {
      const uint32_t partner = matches_[k].partner[position];
      if (partner == kNoMatch) continue;
      points.push_back({.value = x_of(k), .size = others_[k]->requests.size[others_[k]->order[partner]]});
    }
    points.push_back({.value = x_of(others_.size()), .size = model_.base.requests.size[model_.base.order[position]]});
    return points;
  }

  // Is anything as large as the square of the quantity, an attention matrix?
  [[nodiscard]] bool has_squares() const {
    for (size_t i = 0; i < model_.base.order.size(); ++i) {
      const std::vector<SizePoint> points = points_of(i);
      if (points.size() > 1 && fit_size(points, false).rule == SizeRule::square) return true;
    }
    return false;
  }

  // What one recording alone asked for: scratch of a kernel that starts to be used at this value, which grows with the
  // work unless it is tiny (semaphores); or tensors, which grow as others of their size do.
  void fit_unseen(const std::vector<size_t>& positions) {
    for (size_t position : positions) {
      const uint32_t id = model_.base.order[position];
      SizeModel& size = model_.sizes[id];
      const auto found = siblings_.find(model_.base.requests.size[id]);
      if (!model_.base.scratch[position] && found != siblings_.end()) {
        size = found->second[found->second.size() / 2];
      } else if (is_divided_sum(position)) {
        explained_.insert(id);
        model_.explained.push_back(id);
        continue;
      } else if (model_.base.requests.size[id] >= kSemaphoreBytes) {
        size = SizeModel{.linear = size.constant / x_of(others_.size())};
      }
      size.rule = SizeRule::unseen;
    }
    model_.unmatched = static_cast<int64_t>(positions.size());
  }

  // Parts of a product that is summed in several: so many times the result just before, which has one size everywhere.
  [[nodiscard]] bool is_divided_sum(size_t position) const {
    if (!model_.base.scratch[position] || position == 0) return false;
    const uint32_t result = model_.base.order[position - 1];
    const int64_t bytes = model_.base.requests.size[model_.base.order[position]];
    const int64_t of_result = model_.base.requests.size[result];
    return of_result >= kSemaphoreBytes && model_.sizes[result].rule == SizeRule::constant && bytes >= 2 * of_result &&
           bytes % of_result == 0;
  }

  // Those that are like measured ones.
  void forecast_convolutions() {
    if (others_.empty() || model_.power != 1) return;  // of images of another side little was measured
    const int64_t value = model_.base_value();
    const Convolutions found = find_convolutions(model_.base, structure_, value);
    std::vector<uint32_t> position(model_.sizes.size(), kNoMatch);  // by allocation, in the base's order
    for (uint32_t i = 0; i < model_.base.order.size(); ++i) position[model_.base.order[i]] = i;
    std::vector<RecordedConv> convolutions;
    for (const ConvUse& use : found.uses) {
      const auto bytes = [](const RequestLog& log, size_t at) {
        return log.workspace[at] ? log.requests.size[log.order[at]] : 0;
      };
      RecordedConv conv{.use = use, .evidence = {}};
      conv.evidence.push_back({.batch = static_cast<double>(value),
                               .scratch = use.scratch == kNoAllocation ? 0 : model_.base.requests.size[use.scratch]});
      for (size_t k = 0; k < others_.size(); ++k) {
        const uint32_t partner = matches_[k].partner[position[use.result]];
        if (partner == kNoMatch || partner + 1 >= others_[k]->order.size()) continue;
        const double share = x_of(k) / x_of(others_.size());  // of the work at the base
        const int64_t scratch = bytes(*others_[k], partner + 1);
        conv.evidence.push_back(
            {.batch = static_cast<double>(value) * share, .scratch = scratch < kSemaphoreBytes ? 0 : scratch});
      }
      convolutions.push_back(std::move(conv));
    }
    model_.forecast = ConvForecast::make(std::move(convolutions), found.element_bytes, value);
    if (!model_.forecast) return;
    for (const RecordedConv& conv : model_.forecast->convolutions()) {
      if (conv.use.scratch != kNoAllocation) forecast_.insert(conv.use.scratch);
      forecast_.insert(conv.use.result);
    }
  }

  // What is known of the scratch of convolutions is more than what its sizes in several recordings say.
  void fit_convolutions() {
    if (others_.empty()) return;
    const auto model_of = [&](const ScratchSize& size) {
      std::vector<SizeModel> copied;
      for (uint32_t id : size.copied) copied.push_back(model_.sizes[id]);
      return sum_of(copied, size.share, size.fixed);
    };
    for (const ConvScratch& found : find_conv_scratch(model_.base, structure_)) {
      if (forecast_.count(found.result) != 0) continue;
      if (found.is_explained) model_.sizes[found.scratch] = model_of(found.size);
      if (found.scratch != kNoAllocation && model_.base.requests.size[found.scratch] >= kTellingBytes) {
        explained_.insert(found.scratch);
        model_.explained.push_back(found.scratch);
      }
      // Beside a table nothing is guessed where the recording shows none.
      if (!found.may_change || (model_.forecast && found.scratch == kNoAllocation)) continue;
      KernelChange change{.id = found.scratch, .result = found.result, .large = model_of(found.large), .operand = {}};
      if (found.operand != kNoAllocation) change.operand = model_.sizes[found.operand];
      change.usual_from = found.usual_from;
      model_.changes.push_back(change);
    }
  }

  // Scratch of libraries that choose their kernel by size: where some of it steps, all of it may.
  void find_guesses() {
    bool steps = !model_.changes.empty();
    for (size_t i = 0; i < model_.base.order.size(); ++i) {
      const uint32_t id = model_.base.order[i];
      const SizeRule rule = model_.sizes[id].rule;
      const int64_t size = model_.base.requests.size[id];
      if (size < kTellingBytes || explained_.count(id) != 0 || forecast_.count(id) != 0) continue;
      const bool is_step = rule == SizeRule::stepwise || rule == SizeRule::unseen;
      steps = steps || is_step;
      // Tensors are whole rows; workspaces have odd sizes.
      const bool is_workspace = rule == SizeRule::affine || (rule == SizeRule::proportional && size % 512 != 0);
      if (is_step || (is_workspace && model_.base.scratch[i])) model_.guesses.push_back(id);
    }
    if (!steps) model_.guesses.clear();
  }

  void find_unsure() {
    std::set<uint32_t> unsure(model_.guesses.begin(), model_.guesses.end());
    unsure.insert(model_.explained.begin(), model_.explained.end());
    for (const KernelChange& change : model_.changes) {
      if (change.id != kNoAllocation) unsure.insert(change.id);
    }
    constexpr int64_t kUsualGrowth = 4;
    for (size_t i = 0; model_.forecast && i < model_.forecast->convolutions().size(); ++i) {
      if (model_.forecast->is_sure(i, kUsualGrowth * model_.base_value())) continue;
      const ConvUse& use = model_.forecast->convolutions()[i].use;
      unsure.insert(use.scratch != kNoAllocation ? use.scratch : use.result);
    }
    model_.unsure.requests = static_cast<int64_t>(unsure.size());
    for (size_t i = 0; i < model_.base.order.size(); ++i) {
      const uint32_t id = model_.base.order[i];
      const bool is_larger = model_.base.requests.size[id] > model_.unsure.bytes && model_.base.site[i] != 0;
      if (!is_larger || unsure.count(id) == 0) continue;
      model_.unsure.bytes = model_.base.requests.size[id];
      model_.unsure.site = site_of(model_.base, i);
    }
  }

  void count() {
    for (uint32_t id : model_.base.order) {
      const size_t rule = static_cast<size_t>(model_.sizes[id].rule);
      model_.requests_by_rule[rule] += 1;
      model_.bytes_by_rule[rule] += model_.base.requests.size[id];
    }
  }

  ScalingModel& model_;
  const std::vector<const RequestLog*>& others_;
  const std::vector<RequestMatch>& matches_;
  const Structure& structure_;  // of the base
  std::set<uint32_t> explained_;
  std::set<uint32_t> forecast_;  // scratch of convolutions that the table tells of, and what it stands behind
  std::map<int64_t, std::vector<SizeModel>> siblings_;  // by size in the base
};

// From 0 to 1: the same for all requests of a size in the base, spread evenly over the variants.
double lot_of(int64_t base_size, uint32_t variant) {
  uint64_t hash = static_cast<uint64_t>(base_size) * kGolden ^ variant * 0xd1342543de82ef95ULL;
  hash = (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9ULL;
  hash ^= hash >> 32;
  return static_cast<double>(hash % 10001) / 10000;
}

// Another guess of a size. `range`: how far the lowest and the highest are.
int64_t varied(int64_t size, int64_t base_size, uint32_t variant, double range) {
  double share = kGuessSpread * (2 * lot_of(base_size, variant) - 1);
  if (variant == kLowVariant) share = -range;
  if (variant == kHighVariant) share = range;
  return static_cast<int64_t>(static_cast<double>(size) * (1 + share));
}

// Is the kernel another one at that value? Where an operand's size decides, that holds for five of six; else of those
// that may change, about half have at four times the value.
bool has_changed(const KernelChange& change, const ScalingModel& model, double x, uint32_t variant) {
  const double base = std::pow(static_cast<double>(model.base_value()), model.power);
  if (x <= base) return false;
  const double likely =
      change.operand ? (change.operand->at(x) > change.usual_from ? kDecided : 1 - kDecided) : 1 - std::sqrt(base / x);
  const int64_t group = change.id == kNoAllocation ? change.large.at(base) : model.base.requests.size[change.id];
  return (variant == 0 ? 0.5 : lot_of(group, variant)) < likely;
}

int64_t size_of(const KernelChange& change, const ScalingModel& model, double x, int64_t kept, uint32_t variant) {
  const int64_t large = change.large.at(x);
  if (variant == kLowVariant) return std::min(kept, large);
  if (variant == kHighVariant) return std::max(kept, large);
  return has_changed(change, model, x, variant) ? large : kept;
}

// The scratch of convolutions that the table tells of; `behind` by allocation: bytes to ask for behind it.
void forecast(const ScalingModel& model, int64_t value, uint32_t variant, std::vector<int64_t>& sizes,
              std::vector<int64_t>& behind) {
  for (size_t i = 0; model.forecast && i < model.forecast->convolutions().size(); ++i) {
    const ConvUse& use = model.forecast->convolutions()[i].use;
    const OperandBytes operands{.input = sizes[use.input], .output = sizes[use.output]};
    int64_t& bytes = use.scratch == kNoAllocation ? behind[use.result] : sizes[use.scratch];
    if (variant == kLowVariant || variant == kHighVariant) {
      const ConvForecast::Range range = model.forecast->range(i, value, operands);
      bytes = variant == kLowVariant ? range.low : range.high;
    } else {
      const int64_t group = static_cast<int64_t>(model.forecast->group(i));
      bytes = model.forecast->scratch(i, value, operands, variant == 0 ? -1 : lot_of(group, variant));
    }
  }
}

std::vector<SumScratch> scratch_of_sums(const ScalingModel& model, const RequestStream& at) {
  std::vector<SumScratch> scratch;
  for (const BiasSum& sum : model.base.sums) {
    const double growth = static_cast<double>(at.size[sum.input_gradient]) /
                          static_cast<double>(model.base.requests.size[sum.input_gradient]);
    scratch.push_back(sum_scratch(std::llround(static_cast<double>(sum.rows) * growth), sum.columns));
  }
  return scratch;
}

// Blocks behind another one, freed at once, the last first.
void ask_for_scratch(RequestStream& requests, uint32_t behind, std::initializer_list<int64_t> sizes) {
  const uint32_t first = static_cast<uint32_t>(requests.size.size());
  for (int64_t size : sizes) {
    requests.kind.push_back(RequestKind::malloc);
    requests.id.push_back(static_cast<uint32_t>(requests.size.size()));
    requests.size.push_back(size);
    requests.place.push_back(requests.place[behind]);
    requests.begin.push_back(requests.begin[behind]);
  }
  for (uint32_t id = static_cast<uint32_t>(requests.size.size()); id > first; --id) {
    requests.kind.push_back(RequestKind::free);
    requests.id.push_back(id - 1);
  }
}

FrameHashes shared_frames(const std::vector<ScalingInput>& inputs) {
  FrameHashes shared = frame_hashes(*inputs[0].verification->timeline.snapshot);
  for (size_t i = 1; i < inputs.size(); ++i) {
    const FrameHashes own = frame_hashes(*inputs[i].verification->timeline.snapshot);
    std::erase_if(shared, [&](uint64_t hash) { return own.count(hash) == 0; });
  }
  return shared;
}

}  // namespace

Result<ScalingModel> scale(const std::vector<ScalingInput>& inputs, const std::optional<std::vector<int64_t>>& values) {
  std::vector<RequestLog> logs;
  std::vector<Structure> structures;
  const FrameHashes shared = shared_frames(inputs);
  for (const ScalingInput& input : inputs) {
    structures.push_back(find_structure(input.verification->timeline));
    logs.push_back(request_log(*input.verification, structures.back(), shared));
    OOM_TRY([[maybe_unused]] const Done checked, check_recording(input, logs.back()));
  }
  std::vector<size_t> order(inputs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return values ? (*values)[a] < (*values)[b] : bytes_asked(logs[a]) < bytes_asked(logs[b]);
  });
  const size_t base = order.back();
  const Structure& structure = structures[base];
  const bool has_tokens = looks_up_tokens(*inputs[base].verification->timeline.snapshot);
  std::vector<const RequestLog*> others;
  std::vector<RequestMatch> matches;
  ValueQuestion question{.paths = {}, .growth = {}, .given = values};
  for (size_t k = 0; k + 1 < order.size(); ++k) {
    const ScalingInput& other = inputs[order[k]];
    OOM_TRY([[maybe_unused]] const Done settings, check_settings(inputs[base], other));
    RequestMatch match = match_requests(logs[base], logs[order[k]]);
    OOM_TRY([[maybe_unused]] const Done matched, check_match(logs[base], match, inputs[base], other));
    OOM_TRY([[maybe_unused]] const Done same_model,
            check_parameters(logs[base], logs[order[k]], match, structure, inputs[base], other));
    OOM_TRY([[maybe_unused]] const Done grows,
            check_growth(logs[base], logs[order[k]], match, structure, inputs[base], other));
    OOM_TRY([[maybe_unused]] const Done one_quantity, check_one_quantity(match, has_tokens, inputs[base], other));
    question.paths.push_back(other.path);
    question.growth.push_back(match.growth);
    others.push_back(&logs[order[k]]);
    matches.push_back(std::move(match));
  }
  question.paths.push_back(inputs[base].path);
  if (values) {
    question.given->clear();
    for (size_t index : order) question.given->push_back((*values)[index]);
  }
  OOM_TRY(const FoundValues found, find_values(question));
  OOM_TRY([[maybe_unused]] const Done values_agree, check_values(found, question.growth, question.paths));
  ScalingModel model;
  model.values = found.values;
  model.source = found.source;
  model.are_batches = found.are_batches;
  model.recordings = order;
  for (size_t index : order) model.recorded.push_back(logs[index].requests);
  model.base = logs[base];
  if (!others.empty()) {
    const double ratio = static_cast<double>(model.values.back()) / static_cast<double>(model.values.front());
    model.power = follows_square(model.base, *others.front(), matches.front(), ratio) ? 2 : 1;
  }
  Modeller(model, others, matches, structure).run();
  for (const Span& span : structure.spans) {
    model.has_evaluation = model.has_evaluation || span.phase == Phase::evaluation;
    model.has_saving = model.has_saving || span.phase == Phase::saving;
  }
  return model;
}

RequestStream requests_at(const ScalingModel& model, int64_t value, uint32_t variant) {
  RequestStream out = model.base.requests;
  if (value == model.base_value()) return out;
  const double x = std::pow(static_cast<double>(value), model.power);
  for (uint32_t id : model.base.order) out.size[id] = model.sizes[id].at(x);
  std::vector<int64_t> new_scratch(out.size.size(), 0);  // by allocation: bytes to ask for behind it
  for (const KernelChange& change : model.changes) {
    const bool is_new = change.id == kNoAllocation;
    int64_t& bytes = is_new ? new_scratch[change.result] : out.size[change.id];
    bytes = size_of(change, model, x, is_new ? 0 : bytes, variant);
  }
  forecast(model, value, variant, out.size, new_scratch);
  const auto vary = [&](uint32_t id, double range) {
    out.size[id] = varied(out.size[id], model.base.requests.size[id], variant, range);
  };
  if (variant > 0) {
    for (uint32_t id : model.guesses) vary(id, kGuessRange);
  }
  if (variant >= kWideVariant) {
    for (uint32_t id : model.explained) vary(id, kGuessSpread);
  }
  const std::vector<SumScratch> scratch = scratch_of_sums(model, out);
  std::vector<uint32_t> sum_of(out.size.size(), kNoAllocation);  // by allocation: gradient or scratch of which sum
  for (uint32_t i = 0; i < model.base.sums.size(); ++i) {
    const BiasSum& sum = model.base.sums[i];
    sum_of[sum.gradient] = i;
    if (sum.scratch != kNoAllocation) sum_of[sum.scratch] = sum_of[sum.semaphores] = i;
  }
  out.kind.clear();
  out.id.clear();
  const RequestStream& base = model.base.requests;
  for (size_t i = 0; i < base.kind.size(); ++i) {
    if (base.kind[i] == RequestKind::failed) continue;  // a library's try: at another value it tries something else
    const uint32_t id = base.id[i];
    const uint32_t sum = base.kind[i] == RequestKind::empty_cache || base.kind[i] == RequestKind::empty_pool
                             ? kNoAllocation
                             : sum_of[id];
    const bool is_gradient = sum != kNoAllocation && model.base.sums[sum].gradient == id;
    if (sum != kNoAllocation && !is_gradient) continue;
    const bool is_of_block = base.kind[i] != RequestKind::empty_cache && base.kind[i] != RequestKind::empty_pool;
    if (is_of_block && out.size[id] == 0) continue;  // scratch that the kernel of that value does without
    out.kind.push_back(base.kind[i]);
    out.id.push_back(id);
    if (is_gradient && base.kind[i] == RequestKind::malloc && scratch[sum].scratch_bytes > 0) {
      ask_for_scratch(out, id, {scratch[sum].scratch_bytes, scratch[sum].semaphore_bytes});
    }
    if (base.kind[i] == RequestKind::malloc && new_scratch[id] > 0) ask_for_scratch(out, id, {new_scratch[id]});
  }
  out.failures.clear();
  return out;
}

bool is_recorded(const ScalingModel& model, int64_t value) {
  return std::find(model.values.begin(), model.values.end(), value) != model.values.end();
}

RequestStream run_at(const ScalingModel& model, int64_t value, uint32_t variant) {
  const auto found = std::find(model.values.begin(), model.values.end(), value);
  if (found == model.values.end()) return requests_at(model, value, variant);
  return model.recorded[static_cast<size_t>(found - model.values.begin())];
}

}  // namespace oomscope
