#include <algorithm>
#include <array>

#include "remedies/catalogue.h"
#include "remedies/recipe.h"
#include "remedies/remedy.h"
#include "remedies/snippets.h"

namespace oomscope {
namespace {

// Which snippets a finding shows: the place where the case runs first, and Python where the change is in the code.
std::vector<Place> places_of(const Circumstances& circumstances) {
  if (circumstances.is_windows) return {Place::powershell, Place::python};
  if (circumstances.is_notebook) return {Place::notebook};
  if (circumstances.is_slurm) return {Place::sbatch, Place::bash, Place::python};
  return {Place::bash, Place::python};
}

std::vector<std::string> commands_of(const Remedy& remedy, const Circumstances& circumstances) {
  const std::vector<Snippet> snippets = snippets_of(remedy, circumstances);
  for (Place place : places_of(circumstances)) {
    std::vector<std::string> commands;
    for (const Snippet& snippet : snippets) {
      if (snippet.place == place) commands.push_back(snippet.lines);
    }
    if (!commands.empty()) return commands;
  }
  return snippets.empty() ? std::vector<std::string>{} : std::vector<std::string>{snippets.front().lines};
}

}  // namespace

std::string_view name_of(Effect effect) {
  switch (effect) {
    case Effect::figures: return "figures";
    case Effect::replay: return "replay";
    case Effect::transform: return "transform";
    case Effect::unknown: return "unknown";
  }
  return "unknown";
}

std::string_view name_of(Place place) {
  switch (place) {
    case Place::bash: return "bash";
    case Place::powershell: return "powershell";
    case Place::cmd: return "cmd";
    case Place::python: return "python";
    case Place::notebook: return "notebook";
    case Place::dockerfile: return "dockerfile";
    case Place::sbatch: return "sbatch";
  }
  return "bash";
}

std::span<const Remedy> remedies() {
  static const std::array all = {allocator_setting(),
                                 backward_each_part(),
                                 bucket_view(),
                                 check_data(),
                                 check_disk(),
                                 check_indices(),
                                 check_launch(),
                                 checkpointing(),
                                 chunked_loss(),
                                 clear_traceback(),
                                 copy_on_cpu(),
                                 delete_references(),
                                 detach(),
                                 distributed_data_parallel(),
                                 fewer_workers(),
                                 free_other_processes(),
                                 fused_attention(),
                                 fused_optimizer(),
                                 gradient_accumulation(),
                                 group_small_blocks(),
                                 inference_mode(),
                                 larger_gpu(),
                                 larger_shm(),
                                 lazy_modules(),
                                 less_prefetch(),
                                 lighter_optimizer(),
                                 load_on_cpu(),
                                 loss_item(),
                                 lower_limit(),
                                 match_versions(),
                                 memory_mapped_data(),
                                 mixed_precision(),
                                 model_parallel(),
                                 more_host_memory(),
                                 mps_watermark(),
                                 need_weights_false(),
                                 no_grad(),
                                 no_pinning(),
                                 offload(),
                                 other_gpu(),
                                 pool_limit(),
                                 process_in_chunks(),
                                 quantised_loading(),
                                 raise_cgroup_limit(),
                                 raise_fraction(),
                                 raise_map_count(),
                                 raise_page_file(),
                                 raise_ulimit(),
                                 release_cache(),
                                 report_more(),
                                 results_to_cpu(),
                                 return_freed_host_memory(),
                                 reuse_buffers(),
                                 set_to_none(),
                                 sharded_saving(),
                                 sharding(),
                                 share_card(),
                                 sharing_strategy(),
                                 smaller_batch(),
                                 smaller_input(),
                                 smaller_kv_cache(),
                                 smaller_model(),
                                 smaller_workspace(),
                                 static_shapes(),
                                 wait_for_stream()};
  return all;
}

const Remedy* find_remedy(std::string_view id) {
  const std::span<const Remedy> all = remedies();
  const auto found = std::lower_bound(all.begin(), all.end(), id,
                                      [](const Remedy& remedy, std::string_view wanted) { return remedy.id < wanted; });
  return found != all.end() && found->id == id ? &*found : nullptr;
}

std::vector<Change> changes_of(std::initializer_list<std::string_view> ids, const Circumstances& circumstances) {
  std::vector<Change> changes;
  for (std::string_view id : ids) {
    const Remedy* remedy = find_remedy(id);
    if (remedy != nullptr && remedy->applies(circumstances)) changes.push_back(change_of(*remedy, circumstances));
  }
  return changes;
}

std::vector<Snippet> snippets_of(const Remedy& remedy, const Circumstances& circumstances) {
  std::vector<Snippet> snippets = remedy.snippets != nullptr ? remedy.snippets(circumstances) : std::vector<Snippet>{};
  if (!snippets.empty() || remedy.recipe == nullptr) return snippets;
  return python(text_of(circumstances.framework, std::vector<Recipe>{remedy.recipe(circumstances)}));
}

Change change_of(const Remedy& remedy, const Circumstances& circumstances, std::vector<PhraseValue> values) {
  Change change{.remedy = std::string(remedy.id),
                .text = remedy.text != nullptr ? remedy.text(circumstances)
                                               : Phrase{.key = "remedy." + std::string(remedy.id) + ".text"},
                .commands = commands_of(remedy, circumstances),
                .predicted = std::nullopt};
  for (PhraseValue& value : values) change.text.values.push_back(std::move(value));
  if (remedy.saved_bytes == nullptr) return change;
  const std::optional<int64_t> saved = remedy.saved_bytes(circumstances.figures);
  if (!saved || *saved <= 0) return change;
  Predicted predicted;
  predicted.saved_bytes = saved;
  predicted.source = Phrase{.key = "remedy.from-figures"};
  change.predicted = std::move(predicted);
  return change;
}

}  // namespace oomscope
