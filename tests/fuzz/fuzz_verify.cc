// Whatever a readable snapshot says: verify ends, the engine keeps its invariants, and what-if replays take it.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "evidence/snapshot_reader.h"
#include "replay/smallest_cap.h"
#include "replay/verify.h"
#include "replay/what_if.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oomscope;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const SnapshotReadOptions options{.max_memory_bytes = int64_t{256} << 20, .use_template = true};
  const Result<Snapshot> snapshot = read_snapshot_bytes(bytes, "fuzz", options);
  if (!snapshot.has_value()) return 0;
  for (const int32_t device : devices_of(*snapshot)) {
    if (static_cast<size_t>(device) >= snapshot->traces.size()) continue;
    const std::unique_ptr<Verification> verification = verify(*snapshot, device);
    if (!verification->replay->allocator().check_invariants().empty()) __builtin_trap();
    const RequestStream requests = requests_of(*verification);
    WhatIf question{.rules = verification->config.rules, .settings = verification->config.settings, .cap_bytes = {}};
    const Outcome unlimited = replay_what_if(requests, question);
    question.cap_bytes = unlimited.peak_reserved / 2;
    for (const CapKind kind : {CapKind::limit, CapKind::card}) {
      question.cap_kind = kind;
      (void)replay_range(requests, question);
    }
    constexpr size_t kFewRequests = 1000;
    if (requests.kind.size() > kFewRequests) continue;
    question.cap_kind = CapKind::limit;
    (void)smallest_cap(requests, question, {.threads = 1, .event_budget = 10'000, .progress = {}});
  }
  return 0;
}
