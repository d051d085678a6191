#include "plan/scaling.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "model/structure.h"
#include "plan/values.h"

namespace oomscope {
namespace {

// Requests whose stacks may differ between two runs of one program at two values: a fallback here and there.
constexpr double kMostUnmatched = 0.05;
// Without frames only order and sizes speak.
constexpr double kLeastMatchedFrameless = 0.8;
// Parameters that may have another size: a table of positions that grows with the sequence.
constexpr double kMostOtherParameters = 0.02;
// A request that is freed before so many others were made is scratch.
constexpr uint32_t kScratchRequests = 4;

Error differ(const std::string& what, const ScalingInput& a, const ScalingInput& b) {
  return Error{.code = "recordings-differ",
               .what = "the recordings are not of one program at two values: " + what,
               .where = a.path + " and " + b.path,
               .hint = "record the same script, steps and settings twice, and change the batch alone"};
}

int64_t bytes_asked(const RequestLog& log) {
  return std::accumulate(log.order.begin(), log.order.end(), int64_t{0},
                         [&](int64_t sum, uint32_t id) { return sum + log.requests.size[id]; });
}

Result<Done> check_recording(const ScalingInput& input, const RequestLog& log) {
  if (log.order.empty()) {
    return Error{.code = "no-history",
                 .what = "the snapshot has no history, so there is nothing to scale",
                 .where = input.path,
                 .hint = "record with torch.cuda.memory._record_memory_history(stacks=\"python\")"};
  }
  const bool died = !log.requests.failures.empty() && log.requests.failures.back().last;
  if (died) {
    return Error{.code = "run-failed",
                 .what = "the recording ends in a failed request, so what would have followed is unknown",
                 .where = input.path,
                 .hint = "oomscope why " + input.path};
  }
  return Done{};
}

// Parameters have one size at every value, or it is another model.
Result<Done> check_parameters(const RequestLog& base, const RequestLog& other, const RequestMatch& match,
                              const Structure& structure, const ScalingInput& a, const ScalingInput& b) {
  int64_t parameters = 0;
  int64_t differing = 0;
  std::string first;
  for (size_t i = 0; i < base.order.size(); ++i) {
    const Allocation& allocation = base.verification->timeline.allocations[base.order[i]];
    if (structure.traits(allocation.stack).role != StackRole::model || match.partner[i] == kNoMatch) continue;
    ++parameters;
    const int64_t size_a = base.requests.size[base.order[i]];
    const int64_t size_b = other.requests.size[other.order[match.partner[i]]];
    if (size_a == size_b) continue;
    if (differing++ == 0) first = fmt::format("a weight has {} bytes in one and {} in the other", size_a, size_b);
  }
  if (static_cast<double>(differing) <= kMostOtherParameters * static_cast<double>(parameters) + 1) return Done{};
  return differ("another model: " + first, a, b);
}

Result<Done> check_match(const RequestLog& base, const RequestMatch& match, const ScalingInput& a,
                         const ScalingInput& b) {
  const bool framed = match.framed > 0;
  const bool alike =
      framed ? static_cast<double>(match.framed_unmatched) <= kMostUnmatched * static_cast<double>(match.framed)
             : static_cast<double>(match.matched) >= kLeastMatchedFrameless * static_cast<double>(base.order.size());
  if (alike) return Done{};
  if (match.first.empty()) return differ("other requests in other order", a, b);
  const FirstDifference& first = match.first[0];
  return differ(fmt::format("the first difference is {}{} against {}{}", first.site_base,
                            first.event_base == kNoEvent ? "" : fmt::format(", event {},", first.event_base),
                            first.site_other,
                            first.event_other == kNoEvent ? "" : fmt::format(", event {}", first.event_other)),
                a, b);
}

Result<Done> check_settings(const ScalingInput& a, const ScalingInput& b) {
  if (a.verification->timeline.snapshot->features.event_pool_id !=
          b.verification->timeline.snapshot->features.event_pool_id ||
      a.verification->timeline.snapshot->features.host_segments !=
          b.verification->timeline.snapshot->features.host_segments) {
    return differ("they were written by different versions of PyTorch", a, b);
  }
  if (a.verification->config.settings == b.verification->config.settings) return Done{};
  return differ("they were made under different allocator settings", a, b);
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

// How many requests are made between a request and its free; large where it is never freed.
std::vector<uint32_t> requests_until_free(const RequestStream& requests) {
  std::vector<uint32_t> made_at(requests.size.size(), 0);
  std::vector<uint32_t> span(requests.size.size(), UINT32_MAX);
  uint32_t made = 0;
  for (size_t i = 0; i < requests.kind.size(); ++i) {
    const uint32_t id = requests.id[i];
    if (requests.kind[i] == RequestKind::malloc) made_at[id] = ++made;
    if (requests.kind[i] == RequestKind::free || requests.kind[i] == RequestKind::free_held)
      span[id] = made - made_at[id];
  }
  return span;
}

class Modeller {
 public:
  Modeller(ScalingModel& model, const std::vector<const RequestLog*>& others,
           const std::vector<RequestMatch>& matches)
      : model_(model), others_(others), matches_(matches) {}

  void run() {
    const RequestLog& base = model_.base;
    model_.sizes.assign(base.requests.size.size(), SizeModel{});
    for (size_t id = 0; id < model_.sizes.size(); ++id) {
      model_.sizes[id].constant = static_cast<double>(base.requests.size[id]);
    }
    std::vector<size_t> unseen;
    for (size_t i = 0; i < base.order.size(); ++i) {
      const std::vector<SizePoint> points = points_of(i);
      SizeModel& size = model_.sizes[base.order[i]];
      if (points.size() == 1) {
        unseen.push_back(i);
        continue;
      }
      size = fit_size(points);
      siblings_[base.requests.size[base.order[i]]].push_back(size);
    }
    fit_unseen(unseen);
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

  // What one recording alone asked for: scratch of a kernel that starts to be used at this value, of about constant
  // size; or tensors, which grow as others of their size do.
  void fit_unseen(const std::vector<size_t>& positions) {
    const std::vector<uint32_t> span = requests_until_free(model_.base.requests);
    for (size_t position : positions) {
      const uint32_t id = model_.base.order[position];
      SizeModel& size = model_.sizes[id];
      const auto found = siblings_.find(model_.base.requests.size[id]);
      if (span[id] > kScratchRequests && found != siblings_.end()) {
        const std::vector<SizeModel>& siblings = found->second;
        size = siblings[siblings.size() / 2];
      }
      size.rule = SizeRule::unseen;
    }
    model_.unmatched = static_cast<int64_t>(positions.size());
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
  std::map<int64_t, std::vector<SizeModel>> siblings_;  // by size in the base
};

}  // namespace

Result<ScalingModel> scale(const std::vector<ScalingInput>& inputs,
                           const std::optional<std::vector<int64_t>>& values) {
  std::vector<RequestLog> logs;
  for (const ScalingInput& input : inputs) {
    logs.push_back(request_log(*input.verification));
    OOM_TRY([[maybe_unused]] const Done checked, check_recording(input, logs.back()));
  }
  std::vector<size_t> order(inputs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return values ? (*values)[a] < (*values)[b] : bytes_asked(logs[a]) < bytes_asked(logs[b]);
  });
  const size_t base = order.back();
  const Structure structure = find_structure(inputs[base].verification->timeline);
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
  ScalingModel model;
  model.values = found.values;
  model.source = found.source;
  model.recordings = order;
  model.base = logs[base];
  if (!others.empty()) {
    const double ratio = static_cast<double>(model.values.back()) / static_cast<double>(model.values.front());
    model.power = follows_square(model.base, *others.front(), matches.front(), ratio) ? 2 : 1;
  }
  Modeller(model, others, matches).run();
  for (const Span& span : structure.spans) {
    model.has_evaluation = model.has_evaluation || span.phase == Phase::evaluation;
    model.has_saving = model.has_saving || span.phase == Phase::saving;
  }
  return model;
}

RequestStream requests_at(const ScalingModel& model, int64_t value) {
  RequestStream out = model.base.requests;
  if (value == model.base_value()) return out;
  const double x = std::pow(static_cast<double>(value), model.power);
  for (uint32_t id : model.base.order) out.size[id] = model.sizes[id].at(x);
  size_t kept = 0;
  for (size_t i = 0; i < out.kind.size(); ++i) {
    if (out.kind[i] == RequestKind::failed) continue;  // a library's try: at another value it tries something else
    out.kind[kept] = out.kind[i];
    out.id[kept++] = out.id[i];
  }
  out.kind.resize(kept);
  out.id.resize(kept);
  out.failures.clear();
  return out;
}

}  // namespace oomscope
