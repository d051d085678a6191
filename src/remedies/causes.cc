// What helps against which cause. tools/check_docs.py holds the pages in docs/causes/ to it.
#include "remedies/causes.h"

#include <algorithm>
#include <array>

namespace oomscope {

std::span<const CauseGuide> cause_guides() {
  static constexpr auto all = std::to_array<CauseGuide>({
      // Seen in a recording of the card's memory, some in a log too.
      {"graph-kept", {"loss-item", "detach", "backward-each-part", "gradient-accumulation"}, {"empty-cache-saves"}},
      {"tensors-kept", {"results-to-cpu", "detach", "delete-references"}, {"empty-cache-saves"}},
      {"second-model", {"delete-references", "clear-traceback"}, {"empty-cache-saves"}},
      {"grad-in-evaluation",
       {"no-grad", "inference-mode", "smaller-batch"},
       {"eval-saves-memory", "no-grad-saves-60-percent"}},
      {"copy-of-weights", {"copy-on-cpu", "sharded-saving"}, {}},
      {"checkpoint-on-gpu", {"load-on-cpu", "delete-references"}, {}},
      {"exception-holds-tensors", {"clear-traceback", "smaller-batch"}, {"empty-cache-saves"}},
      {"attention-matrix",
       {"fused-attention", "need-weights-false", "smaller-input", "smaller-batch"},
       {"swap-in-flash-attention"}},
      {"logits", {"chunked-loss", "smaller-batch", "smaller-input", "mixed-precision"}, {"mixed-precision-halves"}},
      {"larger-batch", {"smaller-batch", "gradient-accumulation", "static-shapes"}, {"accumulation-is-free"}},
      {"input-size",
       {"smaller-input", "process-in-chunks", "checkpointing", "smaller-batch", "smaller-kv-cache"},
       {"max-split-cures"}},
      {"optimizer-state",
       {"fused-optimizer", "lighter-optimizer", "sharding", "offload", "set-to-none"},
       {"nobody-mentions-fused", "zero-on-one-gpu"}},
      {"pending-frees", {"wait-for-stream"}, {"non-blocking-allocates-anew"}},
      {"private-pool", {"pool-limit"}, {"empty-cache-saves"}},
      {"small-blocks-pin-segments",
       {"group-small-blocks", "allocator-setting"},
       {"many-small-holes", "empty-cache-saves"}},
      {"growing-sizes",
       {"static-shapes", "allocator-setting", "reuse-buffers"},
       {"max-split-cures", "reserved-is-fragmentation"}},
      {"fragmentation",
       {"allocator-setting", "static-shapes", "reuse-buffers", "smaller-batch"},
       {"max-split-cures", "many-small-holes", "gc-threshold-alone", "expandable-only-fragmentation"},
       /*by_phase=*/true},
      {"capacity",
       {"smaller-batch", "gradient-accumulation", "checkpointing", "mixed-precision", "fused-attention", "set-to-none",
        "sharding", "model-parallel", "offload", "quantised-loading", "bucket-view", "smaller-model", "larger-gpu",
        "allocator-setting", "pool-limit"},
       {"slack-is-fragmentation", "mixed-precision-halves", "checkpointing-leaves-one-layer", "accumulation-is-free",
        "empty-cache-saves"},
       /*by_phase=*/true},
      {"device-imbalance", {"distributed-data-parallel", "share-card", "model-parallel"}, {}},
      {"library-workspace",
       {"smaller-workspace", "smaller-batch", "lazy-modules"},
       {"first-tensor-reserves-gigabytes"}},
      {"none",
       {"report-more", "checkpointing", "mixed-precision", "gradient-accumulation", "smaller-batch", "no-grad",
        "chunked-loss", "lighter-optimizer", "fused-optimizer", "quantised-loading", "sharding", "offload",
        "set-to-none"},
       {"reserved-is-fragmentation", "idle-cache-returns"}},
      // Seen in logs.
      {"other-memory-on-card",
       {"free-other-processes", "other-gpu", "release-cache", "share-card", "lower-limit", "smaller-batch"},
       {"kill-9", "workers-copy-the-context", "smi-shows-free"}},
      {"card-full-before-start",
       {"free-other-processes", "other-gpu", "share-card", "load-on-cpu", "lazy-modules"},
       {"first-tensor-reserves-gigabytes", "smi-shows-free"}},
      {"ranks-share-card", {"share-card", "load-on-cpu", "lower-limit"}, {}},
      {"capacity-limit",
       {"raise-fraction", "allocator-setting", "smaller-batch"},
       {"smi-shows-free", "gc-threshold-alone"},
       /*by_phase=*/true},
      {"loader-worker",
       {"fewer-workers", "smaller-batch", "more-host-memory", "less-prefetch", "memory-mapped-data", "no-pinning",
        "raise-cgroup-limit"},
       {"workers-copy-at-once", "workers-copy-the-context", "tracemalloc-shows-the-peak"}},
      {"shared-memory",
       {"larger-shm", "fewer-workers", "less-prefetch", "sharing-strategy", "raise-map-count", "check-disk"},
       {}},
      {"descriptors", {"raise-ulimit", "sharing-strategy", "fewer-workers"}, {}},
      {"host-killed",
       {"more-host-memory", "fewer-workers", "less-prefetch", "smaller-batch", "memory-mapped-data", "load-on-cpu",
        "sharded-saving", "return-freed-host-memory", "raise-cgroup-limit"},
       {"tracemalloc-shows-the-peak"}},
      {"host-allocation",
       {"smaller-batch", "smaller-input", "process-in-chunks", "more-host-memory", "fewer-workers",
        "memory-mapped-data", "load-on-cpu", "raise-page-file", "raise-map-count", "check-data", "sharing-strategy",
        "larger-heap"},
       {"tracemalloc-shows-the-peak"}},
      {"cgroup-limit",
       {"raise-cgroup-limit", "fewer-workers", "less-prefetch", "no-pinning", "memory-mapped-data", "smaller-batch",
        "load-on-cpu", "sharded-saving"},
       {"pin-memory-needs-nvlink", "tracemalloc-shows-the-peak"}},
      {"pinned-memory",
       {"no-pinning", "fewer-workers", "less-prefetch", "more-host-memory", "smaller-batch", "smaller-input",
        "process-in-chunks", "memory-mapped-data"},
       {"pin-memory-needs-nvlink"}},
      {"windows-commit", {"raise-page-file", "fewer-workers", "more-host-memory"}, {}},
      {"library-failure",
       {"smaller-batch", "check-indices", "match-versions", "other-gpu", "check-launch", "lower-limit",
        "free-other-processes", "model-parallel", "lighter-optimizer"},
       {"driver-must-match", "conda-manages-the-driver"}},
      {"gpu-out-of-memory",
       {"smaller-batch", "no-grad", "detach", "checkpointing", "other-gpu", "allocator-setting", "raise-fraction",
        "report-more"},
       {"smi-shows-free", "reserved-is-fragmentation"},
       /*by_phase=*/true},
      {"memory-grows",
       {"loss-item", "detach", "results-to-cpu", "delete-references", "no-grad", "copy-on-cpu", "clear-traceback"},
       {"empty-cache-saves"}},
      {"oversized-request",
       {"smaller-input", "check-data", "fused-attention", "process-in-chunks", "smaller-batch"},
       {"max-split-cures"}},
      {"engine-start",
       {"free-other-processes", "lower-limit", "smaller-kv-cache", "quantised-loading", "model-parallel", "other-gpu",
        "larger-gpu"},
       {"smi-shows-free"}},
      {"other-backend",
       {"smaller-batch", "fused-attention", "smaller-model", "mps-watermark", "smaller-input", "larger-gpu"},
       {}},
      {"block-limit", {"process-in-chunks", "smaller-input", "smaller-batch", "fused-attention"}, {}},
      {"not-memory",
       {"check-launch", "check-indices", "check-data", "check-disk", "match-versions", "sharded-saving"},
       {}},
  });
  return all;
}

const CauseGuide* find_cause_guide(std::string_view id) {
  const std::span<const CauseGuide> all = cause_guides();
  const auto found = std::find_if(all.begin(), all.end(), [id](const CauseGuide& guide) { return guide.id == id; });
  return found != all.end() ? &*found : nullptr;
}

Ids remedies_of_phase(Phase phase) {
  switch (phase) {
    case Phase::optimizer_step: return {"lighter-optimizer", "fused-optimizer", "sharding", "offload", "smaller-batch"};
    case Phase::second_step: return {"smaller-batch", "lighter-optimizer", "sharding", "offload", "checkpointing"};
    case Phase::evaluation: return {"no-grad", "smaller-batch", "results-to-cpu", "smaller-input", "mixed-precision"};
    case Phase::saving: return {"sharded-saving", "copy-on-cpu"};
    case Phase::resume: return {"load-on-cpu", "delete-references"};
    case Phase::next_model: return {"delete-references", "clear-traceback"};
    case Phase::load: return {"quantised-loading", "model-parallel", "other-gpu", "load-on-cpu"};
    case Phase::generation: return {"smaller-kv-cache", "smaller-batch", "quantised-loading", "smaller-input"};
    case Phase::loss: return {"chunked-loss", "smaller-batch", "mixed-precision", "checkpointing"};
    case Phase::start: return {"free-other-processes", "other-gpu", "share-card"};
    case Phase::between_steps: return {"copy-on-cpu", "detach", "smaller-batch"};
    case Phase::unknown:
    case Phase::data_loading:
    case Phase::forward:
    case Phase::backward:
      return {"smaller-batch", "smaller-input", "mixed-precision", "checkpointing", "gradient-accumulation"};
  }
  return {"smaller-batch"};
}

Ids remedies_of_frames() { return {"fused-attention", "chunked-loss", "distributed-data-parallel", "bucket-view"}; }

bool helps_against(std::string_view remedy, const CauseGuide& guide) {
  const auto has = [remedy](const Ids& ids) { return std::find(ids.begin(), ids.end(), remedy) != ids.end(); };
  if (has(guide.remedies) || (guide.by_phase && has(remedies_of_frames()))) return true;
  return guide.by_phase &&
         std::any_of(kPhases.begin(), kPhases.end(), [&](Phase phase) { return has(remedies_of_phase(phase)); });
}

std::span<const Symptom> symptoms() {
  static constexpr auto all = std::to_array<Symptom>({
      {"oom-first-step", {"capacity", "other-memory-on-card", "input-size", "library-workspace"}},
      {"oom-second-step", {"optimizer-state"}},
      {"oom-first-allocation", {"card-full-before-start", "ranks-share-card"}},
      {"oom-later", {"graph-kept", "tensors-kept", "growing-sizes", "larger-batch"}},
      {"oom-evaluation", {"grad-in-evaluation", "tensors-kept"}},
      {"oom-saving", {"copy-of-weights"}},
      {"oom-resume", {"checkpoint-on-gpu"}},
      {"oom-huge-request", {"attention-matrix", "oversized-request", "logits"}},
      {"oom-free-above-request",
       {"capacity-limit", "fragmentation", "other-memory-on-card", "small-blocks-pin-segments", "private-pool",
        "pending-frees"}},
      {"oom-second-try", {"exception-holds-tensors", "second-model"}},
      {"oom-one-device", {"device-imbalance", "ranks-share-card"}},
      {"engine-refuses", {"engine-start", "other-memory-on-card"}},
      {"other-device", {"other-backend", "block-limit"}},
      {"killed", {"cgroup-limit", "host-killed", "loader-worker"}},
      {"worker-killed", {"loader-worker", "cgroup-limit"}},
      {"bus-error", {"shared-memory"}},
      {"ancdata", {"descriptors"}},
      {"cannot-allocate", {"host-allocation", "host-killed"}},
      {"paging-file", {"windows-commit"}},
      {"cublas-alloc-failed", {"library-failure", "other-memory-on-card"}},
      {"device-assert", {"not-memory"}},
  });
  return all;
}

std::span<const std::string_view> claim_ids() {
  static constexpr auto all = std::to_array<std::string_view>({"first-tensor-reserves-gigabytes",
                                                               "a-thousand-square",
                                                               "empty-cache-only-marks",
                                                               "empty-cache-saves",
                                                               "idle-cache-returns",
                                                               "many-small-holes",
                                                               "reserved-is-fragmentation",
                                                               "max-split-cures",
                                                               "gc-threshold-alone",
                                                               "conf-before-import",
                                                               "allocated-above-reserved",
                                                               "slack-is-fragmentation",
                                                               "mixed-precision-halves",
                                                               "checkpointing-leaves-one-layer",
                                                               "accumulation-is-free",
                                                               "nobody-mentions-fused",
                                                               "no-grad-saves-60-percent",
                                                               "eval-saves-memory",
                                                               "expandable-only-fragmentation",
                                                               "non-blocking-allocates-anew",
                                                               "workers-copy-the-context",
                                                               "workers-copy-at-once",
                                                               "pin-memory-needs-nvlink",
                                                               "tracemalloc-shows-the-peak",
                                                               "memory-summary-shows-steps",
                                                               "driver-must-match",
                                                               "conda-manages-the-driver",
                                                               "cuda-amp-names",
                                                               "kill-9",
                                                               "zero-on-one-gpu",
                                                               "swap-in-flash-attention",
                                                               "smi-shows-free"});
  return all;
}

}  // namespace oomscope
