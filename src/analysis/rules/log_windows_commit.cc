// Windows has no more memory to promise.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_windows_commit(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::windows_commit_limit)) return {};
  const TextFacts& text = *facts.text;
  Finding finding = log_finding(text, "windows-commit");
  add_changes(text, {"raise-page-file", "fewer-workers", "more-host-memory"}, finding);
  add_listed_host(text, finding);
  return {finding};
}

}  // namespace oomscope
