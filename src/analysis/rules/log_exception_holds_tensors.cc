// exception-holds-tensors: a request failed, and the program tried again where that exception was still being handled,
// with hardly less allocated: its traceback holds the frames of the failed attempt and their tensors.
#include "analysis/rules/log_rules.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

// The later attempt was made from the function that caught the first, at a line behind: in its except block.
bool is_within_handler(const TextMessage& first, const TextMessage& later) {
  if (first.frames.empty()) return false;
  const TextFrame& caught_in = first.frames.front();
  return std::any_of(later.frames.begin(), later.frames.end(), [&](const TextFrame& frame) {
    return frame.file == caught_in.file && frame.function == caught_in.function && caught_in.line > 0 &&
           frame.line > caught_in.line;
  });
}

bool is_retry(const TextMessage& first, const TextMessage& later) {
  constexpr double kHardlyLess = 0.9;
  if (first.family != Family::allocator || later.family != Family::allocator) return false;
  if (first.rank != later.rank || first.gpu != later.gpu) return false;
  const std::optional<double>& before = first.figures[Figure::allocated];
  const std::optional<double>& after = later.figures[Figure::allocated];
  return before && after && *after >= *before * kHardlyLess && is_within_handler(first, later);
}

}  // namespace

std::vector<Finding> find_log_exception_holds_tensors(const CaseFacts& facts) {
  if (facts.text == nullptr || facts.text->failure == nullptr || facts.text->logs.empty()) return {};
  const TextFacts& text = *facts.text;
  const std::vector<TextMessage>& messages = text.logs[text.failure_log]->messages;
  const auto first = std::adjacent_find(messages.begin(), messages.end(), is_retry);
  if (first == messages.end()) return {};
  const TextMessage& later = *(first + 1);
  Finding finding = log_finding(text, "exception-holds-tensors",
                                {size_value("before", whole_bytes(first->figures[Figure::allocated])),
                                 size_value("after", whole_bytes(later.figures[Figure::allocated])),
                                 {.name = "line", .text = format_count(later.line), .phrases = {}}});
  finding.confidence = Confidence::medium;
  add_changes(text, {"clear-traceback", "smaller-batch"}, finding);
  return {finding};
}

}  // namespace oomscope
