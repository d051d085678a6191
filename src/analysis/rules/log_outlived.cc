// Memory ran short, and the run went on: nothing ended there.
#include "analysis/rules/log_rules.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

FindingEvidence evidence_of(Phrase text, int64_t line) {
  return {.text = std::move(text), .event = std::nullopt, .site = {}, .bytes = std::nullopt, .log_line = line};
}

bool is_of_gpu(const TextMessage& message) {
  return message.family == Family::allocator || message.family == Family::bare_gpu ||
         message.family == Family::gpu_library || message.family == Family::other_backend;
}

}  // namespace

std::vector<Finding> find_log_outlived(const CaseFacts& facts) {
  const Survival* outlived = facts.text == nullptr || facts.text->failure != nullptr ? nullptr : facts.text->outlived();
  if (outlived == nullptr) return {};
  const TextFacts& text = *facts.text;
  const TextMessage& message = *outlived->message;
  std::vector<PhraseValue> values = {{.name = "line", .text = format_count(message.line), .phrases = {}}};
  if (outlived->sign != nullptr)
    values.push_back({.name = "later", .text = format_count(outlived->sign->line), .phrases = {}});
  Finding finding = log_finding(text, outlived->sign == nullptr ? "outlived-choice" : "outlived", std::move(values));
  finding.id = "none";
  finding.instant.failed = false;
  finding.evidence.push_back(evidence_of(Phrase{.key = "log.message"}.with("text", message.excerpt), message.line));
  if (outlived->sign == nullptr) return {finding};
  finding.evidence.push_back(evidence_of(
      Phrase{.key = "log.later"}.with("line", format_count(outlived->sign->line)).with("text", outlived->sign->text),
      outlived->sign->line));
  if (!is_of_gpu(message)) finding.surer = {};
  if (is_of_gpu(message)) add_changes(text, {"smaller-batch", "report-more"}, finding);
  return {finding};
}

}  // namespace oomscope
