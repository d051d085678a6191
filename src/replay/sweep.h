// Sweep: which settings are best for this recording? Every line is a replay, not a rule of thumb.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/what_if.h"

namespace oomscope {

struct SweepOptions {
  std::optional<int64_t> cap_bytes;
  CapKind cap_kind = CapKind::limit;
  int threads = 1;
  std::function<void(size_t done, size_t total)> progress = {};  // called from worker threads, one at a time
  size_t curve_points = 0;                                       // of each run's reserved_curve
  std::vector<std::function<void()>> beside = {};                // other work, done by the same threads first
  // How many of the best runs have their range looked for, each for up to two replays more; PyTorch's default always.
  size_t ranges = SIZE_MAX;
};

struct SweepRun {
  std::string conf;
  AllocatorSettings settings;
  OutcomeRange outcome;
};

// The confs that are tried, PyTorch's default first. Those that the recording's torch does not know are left out.
[[nodiscard]] std::vector<std::string_view> sweep_confs();

// Completed runs first, those without skipped requests before others; then by peak reserved (runs that failed: by how
// far they got), then the shorter conf. Deterministic whatever the number of threads.
[[nodiscard]] std::vector<SweepRun> sweep(const RequestStream& requests, const RuleSet& rules,
                                          const SweepOptions& options);

// Says so where runs that completed passed over requests: their results flatter.
void add_library_tries(const std::vector<SweepRun>& runs, Caveats& caveats);

}  // namespace oomscope
