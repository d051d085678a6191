#include <algorithm>
#include <array>

#include "remedies/catalogue.h"
#include "remedies/recipe.h"
#include "remedies/remedy.h"
#include "remedies/snippets.h"

namespace oomscope {
namespace {

// Where the case runs, the likeliest first: what is to be set is set there.
std::vector<Place> shells_of(const Circumstances& circumstances) {
  std::vector<Place> shells;
  if (circumstances.is_image_build) shells.push_back(Place::dockerfile);
  if (circumstances.is_notebook) shells.push_back(Place::notebook);
  if (circumstances.is_slurm) shells.push_back(Place::sbatch);
  if (circumstances.is_cmd) shells.push_back(Place::cmd);
  if (circumstances.is_windows) shells.push_back(Place::powershell);
  if (circumstances.is_windows && !circumstances.is_cmd) shells.push_back(Place::cmd);
  if (!circumstances.is_notebook && !circumstances.is_windows) shells.push_back(Place::bash);
  if (circumstances.is_container && !circumstances.is_image_build) shells.push_back(Place::dockerfile);
  return shells;
}

// The same for each place; what stands in the code is the same everywhere.
std::vector<std::string> commands_of(const Remedy& remedy, const Circumstances& circumstances) {
  const std::vector<Snippet> snippets = snippets_of(remedy, circumstances);
  std::vector<std::string> commands;
  const auto take = [&](Place place) {
    for (const Snippet& snippet : snippets) {
      const bool is_new = std::find(commands.begin(), commands.end(), snippet.lines) == commands.end();
      if (snippet.place == place && is_new) commands.push_back(snippet.lines);
    }
  };
  for (Place shell : shells_of(circumstances)) take(shell);
  if (commands.empty()) take(Place::python);
  if (commands.empty() && !snippets.empty()) commands.push_back(snippets.front().lines);
  return commands;
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
                                 larger_heap(),
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

bool is_open(const Remedy& remedy, const Circumstances& circumstances) {
  return remedy.applies(circumstances) && !circumstances.in_force.contains(remedy.id);
}

std::vector<Change> changes_of(std::initializer_list<std::string_view> ids, const Circumstances& circumstances) {
  std::vector<Change> changes;
  for (std::string_view id : ids) {
    const Remedy* remedy = find_remedy(id);
    if (remedy != nullptr && is_open(*remedy, circumstances)) changes.push_back(change_of(*remedy, circumstances));
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
