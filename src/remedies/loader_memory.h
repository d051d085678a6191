// What a DataLoader holds in host memory, as far as the figures tell.
#pragma once

#include <optional>

#include "remedies/remedy.h"

namespace oomscope {

// Of all loaders of all ranks on the host. Each rank has (workers × prefetch + 1) batches in shared memory and two more
// a worker while it collates; pinned ones come on top, each rounded up to a power of two.
struct LoaderMemory {
  int64_t ready_bytes = 0;      // batches waiting in shared memory
  int64_t collating_bytes = 0;  // samples and the batch that is made of them, in the workers
  int64_t pinned_bytes = 0;     // 0 unless pin_memory is known to be set
  [[nodiscard]] int64_t total_bytes() const { return ready_bytes + collating_bytes + pinned_bytes; }
};

// The same in batches.
struct LoaderBatches {
  int64_t ready = 0;
  int64_t collating = 0;
  int64_t pinned = 0;
  [[nodiscard]] int64_t total() const { return ready + collating + pinned; }
};
// 0 where the number of workers is not known.
[[nodiscard]] LoaderBatches loader_batches(const Circumstances& circumstances);

// Empty where workers or the size of a batch are not known.
[[nodiscard]] std::optional<LoaderMemory> loader_memory(const Circumstances& circumstances);

// The most workers whose sum stays within half of the host's limit; empty where that is not known, and never below 0.
[[nodiscard]] std::optional<int> workers_that_fit(const Circumstances& circumstances);

}  // namespace oomscope
