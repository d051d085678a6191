// Every worker holds batches, and sooner or later its own copy of the data set.
#include "base/bytes_text.h"
#include "remedies/catalogue.h"
#include "remedies/loader_memory.h"
#include "remedies/snippets.h"

namespace oomscope {
namespace {

// The sum but for the bytes of one batch, which no log prints.
Phrase count_text(const Circumstances& circumstances) {
  const int64_t workers = *circumstances.num_workers;
  const int64_t prefetch = circumstances.prefetch_factor.value_or(2);
  Phrase samples;
  if (circumstances.batch_size)
    samples = Phrase{.key = "remedy.fewer-workers.samples"}.with("count", std::to_string(*circumstances.batch_size));
  return Phrase{.key = "remedy.fewer-workers.batches"}
      .with("workers", std::to_string(workers))
      .with("prefetch", std::to_string(prefetch))
      .with("batches", std::to_string(workers * prefetch + 1 + 2 * workers))
      .with("samples", std::move(samples));
}

}  // namespace

Remedy fewer_workers() {
  return {.id = "fewer-workers",
          .page = "loader-worker",
          .effect = Effect::figures,
          .applies = is_loader_case,
          .snippets =
              [](const Circumstances& circumstances) {
                const std::string workers = std::to_string(workers_that_fit(circumstances).value_or(2));
                if (circumstances.framework == "transformers")
                  return python("args = TrainingArguments(\"out\", dataloader_num_workers=" + workers + ")");
                return python("loader = DataLoader(dataset, batch_size=32, num_workers=" + workers + ")");
              },
          .text =
              [](const Circumstances& circumstances) {
                const std::optional<LoaderMemory> memory = loader_memory(circumstances);
                const std::optional<int> fit = workers_that_fit(circumstances);
                if (!memory && circumstances.num_workers) return count_text(circumstances);
                if (!memory || !fit) return Phrase{.key = "remedy.fewer-workers.text"};
                return Phrase{.key = "remedy.fewer-workers.sum"}
                    .with("workers", std::to_string(*circumstances.num_workers))
                    .with("prefetch", std::to_string(circumstances.prefetch_factor.value_or(2)))
                    .with("batch", format_bytes(*circumstances.figures.host_batch))
                    .with("ranks", std::to_string(circumstances.ranks_on_host.value_or(1)))
                    .with("sum", format_bytes(memory->total_bytes()))
                    .with("fit", std::to_string(*fit))
                    .with("limit", format_bytes(*circumstances.figures.host_limit));
              }};
}

}  // namespace oomscope
