// Whatever a readable snapshot says: its structure, categories and facts are found, the rules answer, the answer is
// written down, its page is made, and none of that takes longer than its events explain.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "analysis/rules/ranking.h"
#include "analysis/run_facts.h"
#include "evidence/snapshot_reader.h"
#include "report/html.h"
#include "report/report_page.h"
#include "report/view_payload.h"
#include "report/why_document.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace oomscope;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const SnapshotReadOptions options{.max_memory_bytes = int64_t{256} << 20, .use_template = true};
  const Result<Snapshot> snapshot = read_snapshot_bytes(bytes, "fuzz", options);
  if (!snapshot.has_value()) return 0;
  for (const int32_t device : devices_of(*snapshot)) {
    if (static_cast<size_t>(device) >= snapshot->traces.size()) continue;  // as the commands give it: with all traces
    const auto begin = std::chrono::steady_clock::now();
    const Result<Diagnosis> diagnosis = diagnose(*snapshot, device, WhyOptions{});
    if (!diagnosis.has_value()) continue;
    const RunFacts facts = find_run_facts(*snapshot, *diagnosis);
    std::vector<Finding> findings = find_findings(CaseFacts{.run = &facts, .text = nullptr});
    try_changes(findings, facts);
    (void)why_payload(*diagnosis, Changes{}, findings, "fuzz")
        .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    const RecordingView view = view_recording(*snapshot, *diagnosis, facts);
    (void)view_payload(view, {.name = "fuzz", .language = Language::english});
    for (const Layers by : {Layers::category, Layers::site}) (void)layer_series(view, by, 64);
    (void)html_section({.body = sites_table(view, 8, Language::english)});
    (void)html_section({.body = steps_table(view, 8, Language::english)});
    constexpr std::chrono::seconds kLimit{20};  // under sanitizers, on a busy machine; inputs have 64 KiB
    if (std::chrono::steady_clock::now() - begin > kLimit) __builtin_trap();
  }
  return 0;
}
