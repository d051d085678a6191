// Categories and causes on real recordings: the balance at all events, the models' arithmetic, and how often the first
// finding is the cause that was staged.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <map>

#include "analysis/rules/ranking.h"
#include "analysis/run_facts.h"
#include "support/recordings.h"

namespace oomscope {
namespace {

std::filesystem::path h200() { return large_recordings() / "h200"; }

#define SKIP_WITHOUT(folder)                  \
  if (!std::filesystem::is_directory(folder)) \
  GTEST_SKIP() << "SKIPPED: no recordings in " << (folder) << "; set OOMSCOPE_DATA to the folder that holds them"

struct Read {
  std::unique_ptr<Snapshot> snapshot;
  std::unique_ptr<Verification> verification;
  Structure structure;
  std::vector<AllocationCategory> categories;
};

std::optional<Read> read(const std::filesystem::path& path) {
  Read read;
  read.snapshot = read_recording(path);
  if (read.snapshot == nullptr || read.snapshot->traces.empty()) return std::nullopt;
  const std::vector<int32_t> devices = devices_of(*read.snapshot);
  if (devices.empty()) return std::nullopt;
  read.verification = verify(*read.snapshot, devices.front());
  read.structure = find_structure(read.verification->timeline);
  read.categories = find_categories(read.verification->timeline, read.structure);
  return read;
}

// Every event's categories and rounding are its active bytes, counted here anew.
void check_balance(const Recording& recording, const Read& read) {
  const Timeline& timeline = read.verification->timeline;
  ASSERT_EQ(read.categories.size(), timeline.allocations.size()) << recording.name;
  int64_t active = 0;
  for (const Allocation& allocation : timeline.allocations) {
    if (allocation.begin == kNoEvent) active += allocation.size;
  }
  const uint32_t events = static_cast<uint32_t>(timeline.trace().size_events());
  const uint32_t stride = events / 40 + 1;
  for (uint32_t i = 0; i < events; ++i) {
    const uint32_t id = timeline.allocation_of[i];
    if (id != kNoAllocation) {
      const Allocation& allocation = timeline.allocations[id];
      if (allocation.begin == i) active += allocation.size;
      if (allocation.free_completed == i) active -= allocation.size;
    }
    if (i % stride != 0) continue;
    const CategorySums sums = sum_categories(timeline, read.categories, i);
    int64_t sum = sums.rounding_at;
    for (int64_t bytes : sums.at) sum += bytes;
    ASSERT_EQ(sum, active) << recording.name << " at event " << i;
  }
}

void check_all_balances(const std::filesystem::path& root) {
  int64_t files = 0;
  for (const Recording& recording : recordings_below(root)) {
    if (recording.name.find("big_ring") != std::string::npos) continue;  // a million events, 40 times
    const std::optional<Read> found = read(recording.path);
    if (!found) continue;
    files += 1;
    check_balance(recording, *found);
  }
  std::printf("balanced: %" PRId64 " files\n", files);
  EXPECT_GT(files, 0);
}

TEST(Categories, BalanceOnSmallRecordings) { check_all_balances(small_recordings()); }

TEST(Categories, BalanceOnAllRecordings) {
  SKIP_WITHOUT(h200());
  check_all_balances(h200());
}

TEST(Categories, BalanceOnOtherPeoplesSnapshots) {
  SKIP_WITHOUT(large_recordings() / "public-snapshots");
  check_all_balances(large_recordings() / "public-snapshots");
}

// The GPT of the recordings: vocabulary 32,000, width 768, 12 layers, 1,024 positions.
int64_t gpt_parameters() {
  const int64_t d = 768;
  const int64_t layer = 4 * d + (3 * d * d + 3 * d) + (d * d + d) + (4 * d * d + 4 * d) + (4 * d * d + d);
  return 32000 * d * 2 + 1024 * d + 2 * d + 12 * layer;
}

// Llama with 12 layers of width 2,048, inner width 5,632, 32 heads of which 4 hold keys and values, vocabulary 32,000.
int64_t llama_parameters() {
  const int64_t d = 2048;
  const int64_t layer = 2 * d * d + 2 * d * (d / 32 * 4) + 3 * d * 5632 + 2 * d;
  return 32000 * d * 2 + 12 * layer + d;
}

// GPT-2 small: its head shares the embedding's weight.
int64_t gpt2_parameters() {
  const int64_t d = 768;
  const int64_t layer = 4 * d + (3 * d * d + 3 * d) + (d * d + d) + (4 * d * d + 4 * d) + (4 * d * d + d);
  return 50257 * d + 1024 * d + 12 * layer + 2 * d;
}

constexpr int64_t kResnet50Parameters = 25'557'032;

struct KnownModel {
  const char* folder;
  int64_t parameters;
  int64_t bytes_each;
  int64_t optimizer_copies;  // AdamW two, SGD with momentum one
};

TEST(Categories, AgreeWithTheModelsArithmetic) {
  SKIP_WITHOUT(h200());
  for (const KnownModel& model : {KnownModel{"gpt_fp32/default", gpt_parameters(), 4, 2},
                                  {"gpt_nodrop/default", gpt_parameters(), 4, 2},
                                  {"gpt_b16/default", gpt_parameters(), 4, 2},
                                  {"gpt_fused/default", gpt_parameters(), 4, 2},
                                  {"late/gpt_fp32_after1", gpt_parameters(), 4, 2},
                                  {"hf_llama_ckpt/default", llama_parameters(), 2, 2},
                                  {"hf_gpt2/default", gpt2_parameters(), 4, 2},
                                  {"resnet50/default", kResnet50Parameters, 4, 1}}) {
    const std::optional<Read> found = read(h200() / model.folder / "snapshot.pickle.zst");
    ASSERT_TRUE(found) << model.folder;
    const uint32_t peak = found->verification->replay->peak_allocated().event;
    const CategorySums sums = sum_categories(found->verification->timeline, found->categories, peak);
    const auto expect = [&](Category category, int64_t bytes) {
      EXPECT_NEAR(static_cast<double>(sums.most[static_cast<size_t>(category)]), static_cast<double>(bytes),
                  static_cast<double>(bytes) / 100)
          << model.folder << ": " << name_of(category);
    };
    const int64_t parameters = model.parameters * model.bytes_each;
    expect(Category::parameter, parameters);
    expect(Category::gradient, parameters);
    expect(Category::optimizer_state, model.optimizer_copies * parameters);
    int64_t live = sums.rounding_at;
    for (int64_t bytes : sums.at) live += bytes;
    EXPECT_LE(sums.at[static_cast<size_t>(Category::unknown)] * 20, live) << model.folder;
  }
}

std::string first_finding(const std::filesystem::path& path) {
  const std::unique_ptr<Snapshot> snapshot = read_recording(path);
  if (snapshot == nullptr) return "[unread]";
  const Result<Diagnosis> diagnosis = diagnose(*snapshot, devices_of(*snapshot).front(), WhyOptions{});
  if (!diagnosis) return "[no diagnosis]";
  const RunFacts facts = find_run_facts(*snapshot, *diagnosis);
  const std::vector<Finding> findings = find_findings(CaseFacts{.run = &facts, .text = nullptr});
  return findings.empty() ? "[nothing]" : findings.front().id;
}

// tests/data/causes, made by tests/gpu/record_causes.py and record_models.py: file names begin with the cause that was
// staged.
TEST(Causes, OfOtherModelsAreTheStagedOnes) {
  const std::vector<Recording> staged = recordings_below(std::filesystem::path(OOMSCOPE_TEST_DATA) / "causes");
  EXPECT_GT(staged.size(), 0U);
  for (const Recording& recording : staged) {
    std::string found = first_finding(recording.path);
    std::replace(found.begin(), found.end(), '-', '_');
    EXPECT_TRUE(recording.name.starts_with(found)) << recording.name << ": " << found;
  }
}

TEST(Causes, AreTheStagedOnes) {
  const nlohmann::json labels = read_json(h200() / "causes.json");
  if (!labels.is_object()) GTEST_SKIP() << "SKIPPED: no causes.json in " << h200() << "; set OOMSCOPE_DATA";
  int64_t right = 0;
  for (const auto& [name, label] : labels.items()) {
    const std::filesystem::path failed = h200() / name / "oom_snapshot.pickle.zst";
    const std::filesystem::path last = h200() / name / "snapshot.pickle.zst";
    const std::string found = first_finding(std::filesystem::exists(failed) ? failed : last);
    right += found == label["cause"] ? 1 : 0;
    if (found != label["cause"]) std::printf("%s: %s\n", name.c_str(), found.c_str());
  }
  EXPECT_GE(right * 100, static_cast<int64_t>(labels.size()) * 95);
}

TEST(Causes, NoneIsFoundInHealthyRecordings) {
  SKIP_WITHOUT(h200());
  const nlohmann::json labels = read_json(h200() / "causes.json");
  int64_t files = 0;
  for (const Recording& recording : recordings_below(h200())) {
    const std::string folder = recording.name.substr(0, recording.name.rfind('/'));
    const bool staged = folder.starts_with("oom/") || folder.starts_with("capfail/") ||
                        folder.starts_with("gallery/") || folder.starts_with("gpt_leak/") ||
                        (labels.is_object() && labels.contains(folder));
    if (!recording.is_final || staged || !recording.result.value("ok", true)) continue;
    files += 1;
    EXPECT_EQ(first_finding(recording.path), "none") << recording.name;
  }
  EXPECT_GT(files, 50);
}

}  // namespace
}  // namespace oomscope
