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
  add_changes(text, {"loss-item", "detach", "delete-references"}, finding);
  return {finding};
}

}  // namespace oomscope
