// Allocated memory rises from message to message.
#include <set>

#include "analysis/rules/log_rules.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

// The phase that all the failures share, else none. A figure that the program prints has no phase.
Phase phase_of_growth(const std::vector<GrowthPoint>& points) {
  std::set<Phase> phases;
  for (const GrowthPoint& point : points) {
    if (point.message->strength > 0) phases.insert(phase_of(*point.message).phase);
  }
  return phases.size() == 1 ? *phases.begin() : Phase::unknown;
}

Phrase point_text(const GrowthPoint& point) {
  const Phase phase = phase_of(*point.message).phase;
  Phrase text = Phrase{.key = phase == Phase::unknown ? "log.growth-point" : "log.growth-point-in"}
                    .with("line", format_count(point.message->line))
                    .with("allocated", format_bytes(static_cast<int64_t>(point.allocated_bytes)));
  if (phase == Phase::unknown) return text;
  return std::move(text).with("phase", Phrase{.key = "instant." + std::string(name_of(phase))});
}

void add_point(const GrowthPoint& point, Finding& finding) {
  finding.evidence.push_back(FindingEvidence{.text = point_text(point),
                                             .event = std::nullopt,
                                             .site = {},
                                             .bytes = static_cast<int64_t>(point.allocated_bytes),
                                             .log_line = point.message->line});
}

// The line without its figures: "step 12: 3.1 GB" and "step 13: 3.2 GB" are of the same place of the program.
std::string skeleton(const std::string& line) {
  std::string out;
  for (char c : line) {
    if ((c < '0' || c > '9') && c != '.' && c != ' ') out += c;
  }
  return out;
}

// Many figures of one place that rise to the end: no warm-up, and no few moments of a single step. What a failure says
// at the end is of another place.
bool is_steady(std::vector<GrowthPoint> points) {
  constexpr size_t kFewest = 6;
  constexpr double kLateShare = 0.35;
  const bool is_failure_alone =
      std::all_of(points.begin(), points.end(), [](const GrowthPoint& point) { return point.message->strength > 0; });
  if (!is_failure_alone) std::erase_if(points, [](const GrowthPoint& point) { return point.message->strength > 0; });
  if (points.size() < kFewest) return false;
  const std::string first = skeleton(points.front().message->excerpt);
  const bool is_one_place = std::all_of(points.begin(), points.end(), [&](const GrowthPoint& point) {
    return skeleton(point.message->excerpt) == first;
  });
  const double late = points.back().allocated_bytes - points[points.size() / 2].allocated_bytes;
  const double all = points.back().allocated_bytes - points.front().allocated_bytes;
  return is_one_place && late >= all * kLateShare;
}

// What is kept in such a phase, the likeliest first.
void add_changes_of(Phase phase, const TextFacts& text, Finding& finding) {
  switch (phase) {
    case Phase::evaluation: add_changes(text, {"no-grad", "results-to-cpu"}, finding); break;
    case Phase::generation: add_changes(text, {"results-to-cpu", "delete-references"}, finding); break;
    case Phase::load:
    case Phase::resume:
    case Phase::next_model: add_changes(text, {"delete-references", "clear-traceback"}, finding); break;
    case Phase::saving:
    case Phase::between_steps: add_changes(text, {"copy-on-cpu", "delete-references"}, finding); break;
    case Phase::unknown:
    case Phase::start:
    case Phase::data_loading:
    case Phase::forward:
    case Phase::loss:
    case Phase::backward:
    case Phase::optimizer_step:
    case Phase::second_step: break;
  }
  if (!text.survived.empty()) add_changes(text, {"clear-traceback"}, finding);
  add_changes(text, {"loss-item", "detach", "results-to-cpu", "delete-references"}, finding);
}

// The first ones and the last.
void add_points(const std::vector<GrowthPoint>& points, Finding& finding) {
  constexpr size_t kFirst = 3;
  for (size_t i = 0; i < points.size(); ++i) {
    if (i < kFirst || i + 1 == points.size()) add_point(points[i], finding);
  }
}

}  // namespace

std::vector<Finding> find_log_leak(const CaseFacts& facts) {
  if (facts.text == nullptr || facts.text->growth.empty()) return {};
  const TextFacts& text = *facts.text;
  const auto first = static_cast<int64_t>(text.growth.front().allocated_bytes);
  const auto last = static_cast<int64_t>(text.growth.back().allocated_bytes);
  Finding finding = log_finding(text, "memory-grows",
                                {size_value("first", first),
                                 size_value("last", last),
                                 {.name = "count", .text = std::to_string(text.growth.size()), .phrases = {}}});
  constexpr size_t kTelling = 4;
  finding.confidence = text.growth.size() < kTelling ? Confidence::low : Confidence::medium;
  finding.bytes = last - first;
  finding.instant.phase = phase_of_growth(text.growth);
  add_points(text.growth, finding);
  if (is_steady(text.growth)) finding.confidence = Confidence::high;
  const Phase phase = finding.instant.phase == Phase::unknown ? text.phase : finding.instant.phase;
  add_changes_of(phase, text, finding);
  return {finding};
}

}  // namespace oomscope
