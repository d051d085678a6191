// No memory ran out, whatever the message sounds like.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_not_memory(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::not_memory)) return {};
  const TextFacts& text = *facts.text;
  const std::string_view id = text.failure->id;
  const std::string& named = text.failure->what;
  const PhraseValue what{.name = "what", .text = named.empty() ? text.failure->excerpt : named, .phrases = {}};
  const bool is_index = id == "gpu.assertion" || id == "gpu.assert-triggered" || id == "index.range";
  std::string key = "not-memory-device";
  if (is_index) key = "not-memory-index";
  const bool is_impossible = text.card.has(Contradiction::impossible_request);
  if (id == "cuda.oom-huge") key = "not-memory-huge";
  if (is_impossible) key = "not-memory-impossible";
  if (id == "triton.shared") key = "not-memory-triton";
  if (text.failure->family == Family::collective) key = "not-memory-collective";
  if (text.failure->family == Family::disk) key = "not-memory-disk";
  if (text.failure->family == Family::by_hand) key = "not-memory-by-hand";
  if (id == "ended.interrupt-mark") key = "not-memory-interrupt-mark";
  const bool is_program = text.failure->family == Family::program || text.failure->family == Family::ended;
  if (is_program) key = id.starts_with("launcher.") ? "not-memory-launcher" : "not-memory-program";
  if (id == "worker.crashed" || id == "worker.signal" || id == "process.crashed") key = "not-memory-crash";
  Finding finding = log_finding(text, key, {what});
  finding.id = "not-memory";
  if (text.failure->family == Family::disk) add_changes(text, {"check-disk", "sharded-saving"}, finding);
  if (is_index || is_impossible || id == "cuda.oom-huge")
    add_changes(text, {"check-indices", "check-launch", "check-data"}, finding);
  if (key == "not-memory-device") add_changes(text, {"check-launch", "match-versions", "check-indices"}, finding);
  if (is_program) add_changes(text, {"match-versions", "check-data"}, finding);
  if (key == "not-memory-crash") add_changes(text, {"check-data", "match-versions"}, finding);
  return {finding};
}

}  // namespace oomscope
