#include "remedies/loader_memory.h"

#include <bit>

#include "types/limits.h"

namespace oomscope {
namespace {

constexpr int kUsualPrefetch = 2;
constexpr int kBatchesWhileCollating = 2;
constexpr int kMostCount = 4096;  // workers, prefetch or ranks

int bounded(std::optional<int> count, int usual) {
  const int value = count.value_or(usual);
  return value < 0 ? 0 : value > kMostCount ? kMostCount : value;
}

}  // namespace

LoaderBatches loader_batches(const Circumstances& circumstances) {
  if (!circumstances.num_workers) return {};
  const int64_t workers = bounded(circumstances.num_workers, 0);
  const int64_t prefetch = bounded(circumstances.prefetch_factor, kUsualPrefetch);
  const int64_t ranks = bounded(circumstances.ranks_on_host, 1);
  const int64_t ready = ranks * (workers * prefetch + 1);
  return {.ready = ready,
          .collating = ranks * workers * kBatchesWhileCollating,
          .pinned = circumstances.pin_memory.value_or(false) ? ready : 0};
}

std::optional<LoaderMemory> loader_memory(const Circumstances& circumstances) {
  const std::optional<int64_t>& batch = circumstances.figures.host_batch;
  if (!circumstances.num_workers || !batch || *batch <= 0 || *batch > kMaxSizeBytes / kMostCount) return std::nullopt;
  const LoaderBatches count = loader_batches(circumstances);
  const auto pinned_batch = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(*batch)));
  const double sum = static_cast<double>(count.total()) * static_cast<double>(pinned_batch);
  if (sum > static_cast<double>(kMaxSizeBytes)) return std::nullopt;
  return LoaderMemory{.ready_bytes = count.ready * *batch,
                      .collating_bytes = count.collating * *batch,
                      .pinned_bytes = count.pinned * pinned_batch};
}

std::optional<int> workers_that_fit(const Circumstances& circumstances) {
  if (!circumstances.figures.host_limit || !loader_memory(circumstances)) return std::nullopt;
  Circumstances fewer = circumstances;
  for (int workers = bounded(circumstances.num_workers, 0); workers > 0; --workers) {
    fewer.num_workers = workers;
    const std::optional<LoaderMemory> memory = loader_memory(fewer);
    if (memory && memory->total_bytes() <= *circumstances.figures.host_limit / 2) return workers;
  }
  return 0;
}

}  // namespace oomscope
