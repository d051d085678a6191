// The engine: exact replay and what-if in events a second, and its free set against the container that PyTorch uses.
//
// Recordings: the million-event one and a dynamic training job, from OOMSCOPE_DATA; without that folder the recording
// of the repository.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "caching/free_set.h"
#include "evidence/snapshot_reader.h"
#include "replay/exact_replay.h"
#include "replay/verify.h"
#include "replay/what_if.h"

namespace oomscope {
namespace {

std::string recording(const char* name) {
  const char* data = std::getenv("OOMSCOPE_DATA");
  const std::filesystem::path folder = data != nullptr ? data : OOMSCOPE_DEFAULT_DATA;
  const std::filesystem::path path = folder / "h200" / name / "snapshot.pickle.zst";
  return std::filesystem::exists(path) ? path.string() : std::string(OOMSCOPE_TEST_DATA) + "/demo_oom.pickle.zst";
}

struct Loaded {
  std::unique_ptr<Snapshot> snapshot;
  std::unique_ptr<Verification> verification;
};

Loaded load(const char* name) {
  Loaded loaded;
  loaded.snapshot = std::make_unique<Snapshot>(*read_snapshot_file(recording(name)));
  loaded.verification = verify(*loaded.snapshot, 0);
  return loaded;
}

void set_events(benchmark::State& state, const Loaded& loaded) {
  const auto events = static_cast<int64_t>(loaded.verification->timeline.trace().size_events());
  state.SetItemsProcessed(state.iterations() * events);
}

// Every address, driver event and statistic compared.
void exact_replay(benchmark::State& state, const char* name) {
  const Loaded loaded = load(name);
  Timeline timeline = loaded.verification->timeline;
  for (auto _ : state) {
    ExactReplay replay(timeline, loaded.verification->config);
    replay.run();
    benchmark::DoNotOptimize(replay.differences());
  }
  set_events(state, loaded);
}

void what_if(benchmark::State& state, const char* name, const char* conf) {
  const Loaded loaded = load(name);
  const RequestStream requests = requests_of(*loaded.verification);
  WhatIf question{.rules = default_rule_set(), .settings = {}, .cap_bytes = std::nullopt};
  question.settings = parse_allocator_settings(conf, SettingsParser::unified)->settings;
  for (auto _ : state) {
    Outcome outcome = replay_what_if(requests, question);
    benchmark::DoNotOptimize(outcome);
  }
  set_events(state, loaded);
}

// The same requests for both: take the best fit out, put it back smaller or larger. `range`: blocks in the set.
std::vector<Block> some_blocks(int64_t count) {
  std::mt19937_64 random(1);
  std::vector<Block> blocks(static_cast<size_t>(count));
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].address = i << 30;
    blocks[i].size = static_cast<int64_t>(1 + random() % 4096) * 512;
  }
  return blocks;
}

void free_set(benchmark::State& state) {
  std::vector<Block> blocks = some_blocks(state.range(0));
  FreeSet set;
  for (Block& block : blocks) set.insert(block);
  std::mt19937_64 random(2);
  for (auto _ : state) {
    Block* block = set.lower_bound(static_cast<int64_t>(1 + random() % 4096) * 512);
    if (block == nullptr) continue;
    set.erase(*block);
    block->size = static_cast<int64_t>(1 + random() % 4096) * 512;
    set.insert(*block);
  }
  state.SetItemsProcessed(state.iterations());
}

struct SizeThenAddress {
  using is_transparent = void;
  bool operator()(const Block* a, const Block* b) const {
    return a->size != b->size ? a->size < b->size : a->address < b->address;
  }
  bool operator()(const Block* a, int64_t size) const { return a->size < size; }
};

void std_set(benchmark::State& state) {
  std::vector<Block> blocks = some_blocks(state.range(0));
  std::set<Block*, SizeThenAddress> set;
  for (Block& block : blocks) set.insert(&block);
  std::mt19937_64 random(2);
  for (auto _ : state) {
    auto found = set.lower_bound(static_cast<int64_t>(1 + random() % 4096) * 512);
    if (found == set.end()) continue;
    Block* block = *found;
    set.erase(found);
    block->size = static_cast<int64_t>(1 + random() % 4096) * 512;
    set.insert(block);
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(exact_replay, million_events, "big_ring_wrapped")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(exact_replay, gpt_dynamic, "gpt_dynamic/default")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(what_if, million_events_default, "big_ring_wrapped", "")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(what_if, million_events_expandable, "big_ring_wrapped", "expandable_segments:True")
    ->Unit(benchmark::kMillisecond);
BENCHMARK(free_set)->Arg(100)->Arg(1000)->Arg(10000);
BENCHMARK(std_set)->Arg(100)->Arg(1000)->Arg(10000);

}  // namespace
}  // namespace oomscope

BENCHMARK_MAIN();
