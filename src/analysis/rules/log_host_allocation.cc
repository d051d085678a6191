// The host refused an allocation.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_host_allocation(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::host_alloc_failed)) return {};
  const TextFacts& text = *facts.text;
  const std::string_view id = text.failure->id;
  const bool is_pinned = text.failure->family == Family::bare_gpu || id == "pinned.host" || id == "thc.host";
  if (id == "mmap.count") {
    Finding finding = log_finding(text, "map-count", {size_value("tried", text.card.tried)});
    add_changes(text, {"raise-map-count", "fewer-workers", "check-data", "sharing-strategy"}, finding);
    return {finding};
  }
  Finding finding = log_finding(text,
                                is_pinned          ? "pinned-memory"
                                : id == "errno.12" ? "host-fork"
                                                   : "host-allocation",
                                {size_value("tried", text.card.tried)});
  if (is_pinned) add_changes(text, {"no-pinning", "fewer-workers", "more-host-memory"}, finding);
  if (id == "errno.12") add_changes(text, {"fewer-workers", "more-host-memory", "memory-mapped-data"}, finding);
  constexpr int64_t kOneHugeTensor = int64_t{8} << 30;
  if (text.card.tried.value_or(0) >= kOneHugeTensor)
    add_changes(text, {"smaller-input", "process-in-chunks", "more-host-memory"}, finding);
  add_changes(text, {"smaller-batch", "more-host-memory", "fewer-workers", "memory-mapped-data"}, finding);
  add_listed_host(text, finding);
  return {finding};
}

}  // namespace oomscope
