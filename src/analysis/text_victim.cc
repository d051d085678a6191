#include "analysis/text_victim.h"

#include "analysis/text_survival.h"

namespace oomscope {
namespace {

bool names_victim(const TextMessage& message) {
  const bool is_of_kernel = message.id.starts_with("kernel.") || message.id == "earlyoom";
  return is_of_kernel && message.pid && !message.what.empty();
}

}  // namespace

std::set<int64_t> worker_pids(std::span<const TextEvidence> logs) {
  std::set<int64_t> pids;
  for (const TextEvidence& log : logs) {
    for (const TextMessage& message : log.messages) {
      if (message.id.starts_with("worker.") && message.pid) pids.insert(*message.pid);
    }
  }
  return pids;
}

const TextMessage* find_victim(std::span<const TextEvidence> logs) {
  const std::set<int64_t> workers = worker_pids(logs);
  const auto rank = [&](const TextMessage& message) {
    return workers.contains(*message.pid) ? 2 : may_be_job(message.what) ? 1 : 0;
  };
  const TextMessage* victim = nullptr;
  for (const TextEvidence& log : logs) {
    for (const TextMessage& message : log.messages) {
      if (names_victim(message) && (victim == nullptr || rank(message) > rank(*victim))) victim = &message;
    }
  }
  return victim;
}

}  // namespace oomscope
