// Every worker holds batches, and sooner or later its own copy of the data set.
#include <algorithm>

#include "base/bytes_text.h"
#include "remedies/catalogue.h"
#include "remedies/loader_memory.h"
#include "remedies/snippets.h"

namespace oomscope {
namespace {

// The sum but for the bytes of one batch, which the log does not print; and how many half of the limit leaves for it.
Phrase count_text(const Circumstances& circumstances) {
  const LoaderBatches count = loader_batches(circumstances);
  Phrase samples;
  if (circumstances.batch_size)
    samples = Phrase{.key = "remedy.fewer-workers.samples"}.with("count", std::to_string(*circumstances.batch_size));
  Phrase most;
  if (circumstances.figures.host_limit && count.total() > 0) {
    most = Phrase{.key = "remedy.fewer-workers.most"}
               .with("limit", format_bytes(*circumstances.figures.host_limit))
               .with("bytes", format_bytes(*circumstances.figures.host_limit / 2 / count.total()));
  }
  return Phrase{.key = "remedy.fewer-workers.batches"}
      .with("workers", std::to_string(*circumstances.num_workers))
      .with("prefetch", std::to_string(circumstances.prefetch_factor.value_or(2)))
      .with("batches", std::to_string(count.total()))
      .with("pinned", count.pinned > 0 ? Phrase{.key = "remedy.fewer-workers.pinned"} : Phrase{})
      .with("samples", std::move(samples))
      .with("most", std::move(most));
}

}  // namespace

Remedy fewer_workers() {
  return {.id = "fewer-workers",
          .page = "loader-worker",
          .effect = Effect::figures,
          .applies = is_loader_case,
          .snippets =
              [](const Circumstances& circumstances) {
                constexpr int kFew = 2;
                const int fewer = std::min(kFew, std::max(circumstances.num_workers.value_or(kFew + 1) - 1, 0));
                const std::string workers = std::to_string(workers_that_fit(circumstances).value_or(fewer));
                if (circumstances.framework == "transformers")
                  return python("args = TrainingArguments(\"out\", dataloader_num_workers=" + workers + ")");
                return loader(circumstances, "num_workers=" + workers);
              },
          .text =
              [](const Circumstances& circumstances) {
                const std::optional<LoaderMemory> memory = loader_memory(circumstances);
                const std::optional<int> fit = workers_that_fit(circumstances);
                if (!memory && circumstances.num_workers) return count_text(circumstances);
                if (!memory) return Phrase{.key = "remedy.fewer-workers.text"};
                Phrase held =
                    Phrase{.key = fit ? "remedy.fewer-workers.sum" : "remedy.fewer-workers.held"}
                        .with("workers", std::to_string(*circumstances.num_workers))
                        .with("prefetch", std::to_string(circumstances.prefetch_factor.value_or(2)))
                        .with("batch", format_bytes(*circumstances.figures.host_batch))
                        .with("ranks", std::to_string(circumstances.ranks_on_host.value_or(1)))
                        .with("sum", format_bytes(memory->total_bytes()))
                        .with("pinned-too",
                              memory->pinned_bytes > 0 ? Phrase{.key = "remedy.fewer-workers.pinned-too"} : Phrase{});
                if (!fit) return held;
                return std::move(held)
                    .with("fit", std::to_string(*fit))
                    .with("limit", format_bytes(*circumstances.figures.host_limit));
              }};
}

}  // namespace oomscope
