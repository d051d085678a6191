// /dev/shm is full.
#include "analysis/rules/log_rules.h"

namespace oomscope {
namespace {

// Who wanted the room. A bus error without more may be any of them.
const char* words_of(const TextFacts& text) {
  const std::string_view id = text.failure->id;
  if (id == "worker.crashed" || id == "worker.signal") return "shared-memory-crash";
  if (shm_has_room(text)) return "shared-memory-has-room";
  if (id == "shm.nccl") return "shared-memory-nccl";
  if (id.starts_with("ray.")) return "shared-memory-ray";
  return id == "shm.bus-plain" && !text.around.num_workers ? "shared-memory-bus" : "shared-memory";
}

}  // namespace

std::vector<Finding> find_log_shared_memory(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::shm_exhausted)) return {};
  const TextFacts& text = *facts.text;
  const std::string_view words = words_of(text);
  Finding finding = log_finding(text, std::string(words));
  finding.id = "shared-memory";
  const bool by_worker =
      words == "shared-memory" || words == "shared-memory-crash" || words == "shared-memory-has-room";
  if (words != "shared-memory-has-room") add_changes(text, {"larger-shm"}, finding);
  if (by_worker) add_changes(text, {"fewer-workers", "less-prefetch", "sharing-strategy"}, finding);
  if (words == "shared-memory-bus") add_changes(text, {"check-disk"}, finding);
  add_listed_shm(text, finding);
  return {finding};
}

}  // namespace oomscope
