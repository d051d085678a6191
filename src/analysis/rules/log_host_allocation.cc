// The host refused an allocation, of pinned memory or of any.
#include "analysis/rules/log_rules.h"

namespace oomscope {
namespace {

// ENOMEM alone names no call: mmap, a read, a write and fork all give it.
bool starts_a_process(const TextMessage& message) {
  const auto tells = [](std::string_view text) {
    return text.find("fork") != std::string_view::npos || text.find("subprocess") != std::string_view::npos ||
           text.find("Popen") != std::string_view::npos || text.find("multiprocessing") != std::string_view::npos ||
           text.find("os.system") != std::string_view::npos;
  };
  return tells(message.excerpt) || tells(message.previous_line) ||
         std::any_of(message.frames.begin(), message.frames.end(), [&](const TextFrame& frame) {
           return tells(frame.file) || tells(frame.function) || tells(frame.code);
         });
}

std::vector<Finding> find(const CaseFacts& facts, bool of_pinned) {
  if (!failed_as(facts, Kind::host_alloc_failed)) return {};
  const TextFacts& text = *facts.text;
  const std::string_view id = text.failure->id;
  const bool is_pinned =
      text.failure->family == Family::bare_gpu || id == "pinned.host" || id == "thc.host" || id == "ggml.pinned";
  if (is_pinned != of_pinned) return {};
  if (ran_out_of_mappings(text)) {
    Finding finding = log_finding(text, "map-count", {size_value("tried", text.card.tried)});
    add_changes(text, {"raise-map-count", "fewer-workers", "check-data", "sharing-strategy"}, finding);
    return {finding};
  }
  const bool is_impossible = text.card.has(Contradiction::impossible_request);
  const bool is_fork = id == "errno.12" && starts_a_process(*text.failure);
  Finding finding = log_finding(text,
                                is_pinned                ? "pinned-memory"
                                : is_fork                ? "host-fork"
                                : is_impossible          ? "host-impossible"
                                : id == "runtime.heap"   ? "runtime-heap"
                                : id == "tcmalloc.large" ? "host-large"
                                : text.card.tried        ? "host-allocation"
                                                         : "host-allocation-bare",
                                {size_value("tried", text.card.tried)});
  if (id == "runtime.heap") {  // which a setting of the runtime limits, not the machine
    add_changes(text, {"larger-heap"}, finding);
    return {finding};
  }
  if (is_pinned) add_changes(text, {"no-pinning", "fewer-workers", "more-host-memory"}, finding);
  if (is_fork) add_changes(text, {"fewer-workers", "more-host-memory", "memory-mapped-data"}, finding);
  const bool is_plain = !is_pinned && !is_fork && !is_impossible;
  if (is_plain && text.around.is_windows) add_changes(text, {"raise-page-file"}, finding);
  if (is_plain && (text.phase == Phase::resume || text.phase == Phase::load)) {  // weights, whatever the batch
    add_changes(text, {"load-on-cpu", "more-host-memory"}, finding);
    add_listed_host(text, finding);
    return {finding};
  }
  if (id == "mmap.count") add_changes(text, {"more-host-memory", "load-on-cpu", "fewer-workers"}, finding);  // a file
  constexpr int64_t kOneHugeTensor = int64_t{8} << 30;
  if (text.card.tried.value_or(0) >= kOneHugeTensor)
    add_changes(text, {"smaller-input", "process-in-chunks", "more-host-memory"}, finding);
  if (is_impossible) add_changes(text, {"check-data", "smaller-input"}, finding);
  add_changes(text, {"smaller-batch", "more-host-memory", "fewer-workers", "memory-mapped-data"}, finding);
  if (id.starts_with("tf.")) {
    for (Change& change : finding.changes) change.commands.clear();  // they are PyTorch's
  }
  add_listed_host(text, finding);
  return {finding};
}

}  // namespace

std::vector<Finding> find_log_host_allocation(const CaseFacts& facts) { return find(facts, /*of_pinned=*/false); }
std::vector<Finding> find_log_pinned_memory(const CaseFacts& facts) { return find(facts, /*of_pinned=*/true); }

}  // namespace oomscope
