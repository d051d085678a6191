#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "remedies/causes.h"
#include "remedies/loader_memory.h"
#include "remedies/recipe.h"
#include "remedies/remedy.h"

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

bool applies(std::string_view id, const Circumstances& circumstances) {
  return find_remedy(id)->applies(circumstances);
}

std::string snippet(std::string_view id, Place place, const Circumstances& circumstances) {
  for (const Snippet& candidate : snippets_of(*find_remedy(id), circumstances)) {
    if (candidate.place == place) return candidate.lines;
  }
  return "";
}

TEST(Remedies, AreSortedAndFoundByTheirId) {
  EXPECT_TRUE(std::is_sorted(remedies().begin(), remedies().end(),
                             [](const Remedy& a, const Remedy& b) { return a.id < b.id; }));
  for (const Remedy& remedy : remedies()) EXPECT_EQ(find_remedy(remedy.id), &remedy);
  EXPECT_EQ(find_remedy("no-such-remedy"), nullptr);
}

TEST(Remedies, EachIsOnThePageOfACauseThatItHelpsAgainst) {
  for (const Remedy& remedy : remedies()) {
    const CauseGuide* guide = find_cause_guide(remedy.page);
    ASSERT_NE(guide, nullptr) << remedy.id;
    EXPECT_NE(std::find(guide->remedies.begin(), guide->remedies.end(), remedy.id), guide->remedies.end()) << remedy.id;
  }
}

TEST(Remedies, CausesNameRemediesAndClaimsThatExist) {
  const std::set<std::string_view> claims(claim_ids().begin(), claim_ids().end());
  for (const CauseGuide& guide : cause_guides()) {
    EXPECT_FALSE(guide.remedies.empty()) << guide.id;
    for (std::string_view id : guide.remedies) EXPECT_NE(find_remedy(id), nullptr) << guide.id << ": " << id;
    for (std::string_view id : guide.claims) EXPECT_TRUE(claims.contains(id)) << guide.id << ": " << id;
  }
  for (const Symptom& symptom : symptoms()) {
    for (std::string_view id : symptom.causes) EXPECT_NE(find_cause_guide(id), nullptr) << symptom.key << ": " << id;
  }
}

TEST(MixedPrecision, NeedsTheHardware) {
  EXPECT_FALSE(applies("mixed-precision", {.compute_capability = 61}));
  EXPECT_TRUE(applies("mixed-precision", {.compute_capability = 70}));
  EXPECT_EQ(snippet("mixed-precision", Place::python, {.compute_capability = 75}).find("bfloat16"), std::string::npos);
  EXPECT_NE(snippet("mixed-precision", Place::python, {.compute_capability = 80}).find("bfloat16"), std::string::npos);
}

TEST(MixedPrecision, NamesTheScalerOfTheRelease) {
  const auto lines = [](std::string version) {
    return snippet("mixed-precision", Place::python, {.torch_version = std::move(version), .compute_capability = 75});
  };
  EXPECT_NE(lines("2.2.1").find("torch.cuda.amp.GradScaler()"), std::string::npos);
  EXPECT_NE(lines("2.3.0+cu121").find("torch.amp.GradScaler(\"cuda\")"), std::string::npos);
}

TEST(AllocatorSetting, UsesTheNameAndTheKeysOfTheRelease) {
  EXPECT_EQ(snippet("allocator-setting", Place::bash, {.torch_version = "1.12"}),
            "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512");
  EXPECT_EQ(snippet("allocator-setting", Place::bash, {.torch_version = "2.8"}),
            "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  EXPECT_EQ(snippet("allocator-setting", Place::sbatch, {.torch_version = "2.4", .is_rocm = true}),
            "export PYTORCH_HIP_ALLOC_CONF=expandable_segments:True");
  EXPECT_EQ(snippet("allocator-setting", Place::powershell, {.torch_version = "2.11"}),
            "$env:PYTORCH_ALLOC_CONF = \"expandable_segments:True\"");
}

TEST(AllocatorSetting, IsNotProposedWhereItIsOnAlready) {
  EXPECT_FALSE(applies("allocator-setting", {.expandable_segments = true}));
  EXPECT_TRUE(applies("allocator-setting", {.expandable_segments = true, .settings = "max_split_size_mb:64"}));
}

TEST(Snippets, GoBeyondTheLimitsInForce) {
  const Circumstances known{.kind = Kind::cgroup_or_slurm_limit,
                            .framework = "vllm",
                            .failing_card = 0,
                            .limits = {.memory_bytes = 128 * kGiB,
                                       .shm_bytes = 32 * kGiB,
                                       .open_files = 1048576,
                                       .mappings = 2097152,
                                       .engine_share = 0.98,
                                       .engine_tokens = 4096,
                                       .engine_sequences = 4,
                                       .visible_cards = "1"}};
  EXPECT_EQ(snippet("raise-cgroup-limit", Place::sbatch, known), "#SBATCH --mem=256G");
  EXPECT_NE(snippet("larger-shm", Place::bash, known).find("--shm-size=64g"), std::string::npos);
  EXPECT_EQ(snippet("raise-ulimit", Place::bash, known), "ulimit -n 2097152");
  EXPECT_EQ(snippet("raise-map-count", Place::bash, known), "sudo sysctl -w vm.max_map_count=4194304");
  EXPECT_EQ(snippet("smaller-kv-cache", Place::bash, known),
            "vllm serve NAME --gpu-memory-utilization 0.98 \\\n    --max-model-len 2048 --max-num-seqs 2");
  EXPECT_EQ(snippet("other-gpu", Place::bash, known), "export CUDA_VISIBLE_DEVICES=0");
  EXPECT_EQ(snippet("other-gpu", Place::bash, {.failing_card = 1, .limits = {.visible_cards = "2,5,7"}}),
            "export CUDA_VISIBLE_DEVICES=2,7");
  EXPECT_EQ(snippet("raise-ulimit", Place::bash, {.limits = {.open_files = 1024}}), "ulimit -n 65536");
  EXPECT_EQ(snippet("larger-shm", Place::bash, {.limits = {.is_host_shm = true}}),
            "mount -o remount,size=16G /dev/shm  # on the host, whose /dev/shm it is");
}

TEST(QuantisedLoading, IsForWeightsThatAreNotTrained) {
  EXPECT_FALSE(applies("quantised-loading", {.phase = Phase::backward}));
  EXPECT_TRUE(applies("quantised-loading", {.phase = Phase::load}));
}

TEST(Remedies, NameOnlyWhatTheReleaseHas) {
  const Circumstances old{.phase = Phase::optimizer_step, .torch_version = "1.0"};
  for (std::string_view id : {"fused-optimizer", "sharding", "offload", "mixed-precision", "set-to-none"})
    EXPECT_FALSE(applies(id, old)) << id;
  EXPECT_EQ(snippet("lighter-optimizer", Place::python, old).find("bitsandbytes"), std::string::npos);
  EXPECT_EQ(snippet("share-card", Place::bash, old),
            "python -m torch.distributed.launch --use_env --nproc_per_node=8 train.py");
  EXPECT_TRUE(applies("offload", {.phase = Phase::backward, .torch_version = "1.10"}));
  for (std::string_view release : {"0.4", "1.3"}) {
    const Circumstances older{.phase = Phase::backward, .torch_version = std::string(release)};
    for (const Remedy& remedy : remedies()) {
      if (!remedy.applies(older)) continue;
      for (std::string_view name : {"set_to_none", "antialias", "use_reentrant", "_record_memory_history"})
        EXPECT_EQ(snippet(remedy.id, Place::python, older).find(name), std::string::npos) << remedy.id << " " << name;
    }
  }
  EXPECT_NE(snippet("sharding", Place::python, {.torch_version = "1.8"}).find("ZeroRedundancyOptimizer"),
            std::string::npos);
}

TEST(FreeOtherProcesses, AsksTheCardsOwnDriver) {
  EXPECT_NE(snippet("free-other-processes", Place::bash, {.is_rocm = true}).find("/dev/kfd"), std::string::npos);
  EXPECT_EQ(snippet("free-other-processes", Place::bash, {.is_rocm = true}).find("nvidia"), std::string::npos);
}

TEST(FusedOptimizer, IsThatOfTheJob) {
  const auto lines = [](std::string version) {
    return snippet("fused-optimizer", Place::python, {.torch_version = std::move(version), .has_momentum_alone = true});
  };
  EXPECT_NE(lines("2.3").find("torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, fused=True)"),
            std::string::npos);
  EXPECT_NE(lines("2.1").find("foreach=False"), std::string::npos);
}

TEST(ChangeOf, TellsWhatTheFiguresSave) {
  const Change change = change_of(*find_remedy("set-to-none"), {.figures = {.gradients = 500 * kMiB}});
  ASSERT_TRUE(change.predicted);
  EXPECT_EQ(change.predicted->saved_bytes, 500 * kMiB);
  EXPECT_FALSE(change_of(*find_remedy("set-to-none"), {}).predicted);
}

TEST(ChangesOf, LeavesOutWhatCannotHelpHere) {
  const std::vector<Change> changes =
      changes_of({"checkpointing", "mixed-precision", "fused-optimizer", "no-such-remedy"},
                 {.phase = Phase::optimizer_step, .compute_capability = 61});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes.front().remedy, "fused-optimizer");
}

TEST(ChangesOf, OneCardHasNobodyToShareWith) {
  EXPECT_TRUE(changes_of({"sharding", "model-parallel", "other-gpu"}, {.visible_devices = 1}).empty());
}

TEST(ChangeOf, ShowsLinesForThePlaceOfTheCase) {
  const Remedy& setting = *find_remedy("allocator-setting");
  EXPECT_EQ(change_of(setting, {.is_notebook = true}).commands.front(),
            "%env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  EXPECT_EQ(change_of(setting, {.is_windows = true}).commands.front(),
            "$env:PYTORCH_CUDA_ALLOC_CONF = \"max_split_size_mb:512\"");
}

// 4 workers × 2 + 1 batches of 4 MiB were 36 MiB of shared memory, measured.
TEST(LoaderMemory, AddsUpWhatIsReadyCollatedAndPinned) {
  const Circumstances measured{.num_workers = 4, .figures = {.host_batch = 4 * kMiB}};
  EXPECT_EQ(loader_memory(measured)->ready_bytes, 36 * kMiB);
  EXPECT_EQ(loader_memory(measured)->collating_bytes, 32 * kMiB);
  const Circumstances pinned{.num_workers = 0, .pin_memory = true, .figures = {.host_batch = 600 * kMiB}};
  EXPECT_EQ(loader_memory(pinned)->pinned_bytes, kGiB);
}

TEST(LoaderMemory, SaysHowManyWorkersFit) {
  const Circumstances tight{.num_workers = 16, .figures = {.host_batch = 256 * kMiB, .host_limit = 8 * kGiB}};
  const int fit = workers_that_fit(tight).value();
  EXPECT_EQ(fit, 3);  // 3 × 2 + 1 batches ready and 3 × 2 in the making: 13 of 16
  EXPECT_EQ(change_of(*find_remedy("fewer-workers"), tight).text.key, "remedy.fewer-workers.sum");
  EXPECT_FALSE(workers_that_fit({.num_workers = 4}));
  EXPECT_FALSE(loader_memory({.num_workers = 4, .figures = {.host_batch = INT64_MAX}}));
}

std::string text_in(std::string_view framework,
                    std::initializer_list<std::pair<std::string_view, Circumstances>> forms) {
  std::vector<RemedyForm> list;
  for (auto [id, circumstances] : forms) {
    circumstances.framework = framework;
    list.push_back({.remedy = find_remedy(id), .circumstances = circumstances});
  }
  return text_of(framework, list);
}

TEST(Recipes, FollowTheForm) {
  const auto lines = [](std::string_view id, std::string variant, std::optional<int64_t> number = {}) {
    return snippet(id, Place::python, {.variant = std::move(variant), .number = number});
  };
  EXPECT_NE(lines("mixed-precision", "autocast-bf16").find("torch.autocast"), std::string::npos);
  EXPECT_NE(lines("mixed-precision", "pure-bf16").find("model.to(torch.bfloat16)"), std::string::npos);
  EXPECT_NE(lines("checkpointing", "checkpointing-every-3rd", 3).find("i % 3 == 0"), std::string::npos);
  EXPECT_NE(lines("checkpointing", "checkpointing-selective").find("context_fn"), std::string::npos);
  EXPECT_NE(lines("gradient-accumulation", "accumulate-8", 8).find("batch_size // 8"), std::string::npos);
  EXPECT_NE(lines("lighter-optimizer", "sgd-momentum").find("momentum=0.9"), std::string::npos);
  EXPECT_NE(lines("fused-optimizer", "foreach-off").find("foreach=False"), std::string::npos);
  EXPECT_NE(lines("offload", "offload-optimizer").find("CPUOffloadOptimizer"), std::string::npos);
  EXPECT_NE(lines("sharding", "zero-1", 4).find("ZeroRedundancyOptimizer"), std::string::npos);
  EXPECT_NE(lines("sharding", "zero-3", 4).find("--nproc-per-node 4"), std::string::npos);
}

TEST(Recipes, SeveralMakeOneText) {
  const Circumstances quarter{.variant = "accumulate-4", .number = 4, .batch_size = 32};
  EXPECT_EQ(
      text_in("transformers", {{"mixed-precision", {}}, {"gradient-accumulation", quarter}}),
      "args = TrainingArguments(\"out\", bf16=True, per_device_train_batch_size=8, gradient_accumulation_steps=4)");
  EXPECT_EQ(text_in("", {{"mixed-precision", {}}, {"gradient-accumulation", quarter}}),
            "loader = DataLoader(dataset, batch_size=8)\nfor i, batch in enumerate(loader):\n"
            "    with torch.autocast(\"cuda\", dtype=torch.bfloat16):\n        loss = loss_of(model, batch) / 4\n"
            "    loss.backward()\n    if (i + 1) % 4 == 0:\n        optimizer.step()\n"
            "        optimizer.zero_grad(set_to_none=True)");
}

TEST(Recipes, ConfigsOfDeepSpeedAreOne) {
  const std::string text = text_in("deepspeed", {{"offload", {.variant = "offload-parameters"}},
                                                 {"sharding", {.variant = "zero-1", .number = 2}},
                                                 {"gradient-accumulation", {.number = 4, .batch_size = 16}}});
  EXPECT_NE(text.find("deepspeed --num_gpus 2"), std::string::npos);
  EXPECT_NE(text.find("\"stage\": 3"), std::string::npos) << text;
  EXPECT_NE(text.find("\"offload_param\""), std::string::npos);
  EXPECT_NE(text.find("\"train_micro_batch_size_per_gpu\": 4"), std::string::npos);
  EXPECT_NE(text.find("\"pin_memory\": True"), std::string::npos);
}

TEST(Recipes, EachConfigOfDeepSpeedHasABatch) {
  const auto has = [](const char* framework, const char* text) {
    return text_in(framework, {{"sharding", {.variant = "zero-2", .number = 2}}}).find(text) != std::string::npos;
  };
  EXPECT_TRUE(has("deepspeed", "\"train_micro_batch_size_per_gpu\": batch_size"));
  EXPECT_TRUE(has("transformers", "\"train_micro_batch_size_per_gpu\": \"auto\""));
  EXPECT_TRUE(has("accelerate", "\"train_micro_batch_size_per_gpu\": \"auto\""));
  EXPECT_FALSE(has("lightning", "auto"));
}

// Every snippet in every release, framework and place, parsed by what it is pasted into.
struct Form {
  std::string_view remedy;  // empty: all
  const char* variant;
  std::optional<int64_t> number;
};
const Form kForms[] = {{"", "", {}},
                       {"checkpointing", "checkpointing-every-2nd", 2},
                       {"checkpointing", "checkpointing-selective", {}},
                       {"fused-attention", "eager-attention", {}},
                       {"fused-optimizer", "foreach-on", {}},
                       {"gradient-accumulation", "accumulate-8", 8},
                       {"lighter-optimizer", "sgd", {}},
                       {"lighter-optimizer", "sgd-momentum", {}},
                       {"lighter-optimizer", "adafactor", {}},
                       {"mixed-precision", "pure-bf16", {}},
                       {"offload", "offload-optimizer", {}},
                       {"offload", "offload-parameters", {}},
                       {"sharding", "zero-1", 4},
                       {"sharding", "zero-2", 4},
                       {"sharding", "zero-3", 4}};

TEST(Snippets, Parse) {
  std::set<std::string> seen;
  for (const char* version : {"", "1.8", "1.13.1", "2.0", "2.3", "2.12.0+cu130"}) {
    for (const char* framework : {"", "lightning", "transformers", "accelerate", "deepspeed", "vllm"}) {
      for (int capability : {70, 90}) {
        Circumstances circumstances{.torch_version = version, .compute_capability = capability, .framework = framework};
        for (const Remedy& remedy : remedies()) {
          for (const Form& form : kForms) {
            if (form.remedy != remedy.id && !form.remedy.empty()) continue;
            circumstances.variant = form.variant;
            circumstances.number = form.number;
            for (const Snippet& found : snippets_of(remedy, circumstances)) {
              EXPECT_FALSE(found.lines.empty()) << remedy.id;
              seen.insert(std::string(name_of(found.place)) + "\n" + found.lines);
            }
          }
        }
      }
    }
  }
  const std::string path = testing::TempDir() + "/snippets.txt";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  for (const std::string& text : seen) std::fwrite(text.c_str(), 1, text.size() + 1, file);
  std::fclose(file);
  const std::string tool = std::string(OOMSCOPE_TEST_DATA) + "/../../tools/check_snippets.py";
  EXPECT_EQ(std::system(("python3 '" + tool + "' '" + path + "'").c_str()), 0);
}

}  // namespace
}  // namespace oomscope
