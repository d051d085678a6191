// Floor, packing and its check: time, and the height reached as a ratio to the floor, on public benchmark instances and
// on made recordings of up to five million allocations.
//
//   bin/bench_packing --benchmark_counters_tabular=true
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "../tests/support/dsa_csv.h"
#include "replay/bounds.h"
#include "replay/packing.h"
#include "replay/packing_check.h"

namespace oomscope {
namespace {

// Parameters for good, and a churn of short and a few long allocations in mixed sizes: `jitter` makes no two alike.
std::vector<Lifetime> made_recording(uint32_t count, bool jitter) {
  std::mt19937 random(1);
  std::vector<Lifetime> lifetimes(count);
  const uint32_t period = 10'000;
  for (uint32_t i = 0; i < count; ++i) {
    if (i % period == 0 && !jitter) random.seed(1);
    const auto draw = static_cast<uint32_t>(random());
    const uint32_t duration = draw % 16 == 0 ? 2000 + draw / 16 % 2000 : 1 + draw / 16 % 60;
    const uint32_t shift = draw % 7 + draw / 7 % 9;
    lifetimes[i] = {512 * (1 + static_cast<int64_t>(draw / 64 % 1000) * (int64_t{1} << shift)), 2 * i,
                    2 * i + 2 * duration, 0};
    if (i < 300) lifetimes[i].end = 2 * count + 8000;
  }
  return lifetimes;
}

void run_floor(benchmark::State& state, const std::vector<Lifetime>& lifetimes) {
  for (auto _ : state) benchmark::DoNotOptimize(floor_bytes(lifetimes));
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * 2 * static_cast<int64_t>(lifetimes.size()));
}

void run_check(benchmark::State& state, const std::vector<Lifetime>& lifetimes) {
  const Result<Packing> packing = pack_lifetimes(lifetimes, {.work_units = 0});
  for (auto _ : state) {
    if (!packing || !check_packing(lifetimes, *packing)) state.SkipWithError("the packing is wrong");
  }
}

void run_pack(benchmark::State& state, const std::vector<Lifetime>& lifetimes, int64_t work_units) {
  for (auto _ : state) {
    const Result<Packing> packing = pack_lifetimes(lifetimes, {.work_units = work_units});
    state.PauseTiming();
    if (!packing || !check_packing(lifetimes, *packing)) {
      state.SkipWithError("the packing is wrong");
      break;
    }
    state.counters["to_floor"] =
        static_cast<double>(packing->height_bytes) / static_cast<double>(std::max<int64_t>(packing->floor_bytes, 1));
    state.counters["height"] = static_cast<double>(packing->height_bytes);
    state.counters["items"] = static_cast<double>(lifetimes.size());
    state.SetLabel(packing->method);
    state.ResumeTiming();
  }
}

void add_packs(const std::string& name, const std::vector<Lifetime>& lifetimes) {
  for (bool thorough : {false, true}) {
    const int64_t work_units = thorough ? kThoroughPackingWork : kQuickPackingWork;
    benchmark::RegisterBenchmark((std::string(thorough ? "thorough/" : "quick/") + name).c_str(),
                                 [=](benchmark::State& state) { run_pack(state, lifetimes, work_units); })
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1);
  }
}

void add_made(const std::string& name, uint32_t count, bool jitter) {
  const std::vector<Lifetime> lifetimes = made_recording(count, jitter);
  benchmark::RegisterBenchmark(("floor/" + name).c_str(), [=](benchmark::State& s) {
    run_floor(s, lifetimes);
  })->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark(("check/" + name).c_str(), [=](benchmark::State& s) {
    run_check(s, lifetimes);
  })->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark(("quick/" + name).c_str(),
                               [=](benchmark::State& s) { run_pack(s, lifetimes, kQuickPackingWork); })
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1);
}

void add_instances() {
  const char* data = std::getenv("OOMSCOPE_DATA");
  const std::filesystem::path folder = std::filesystem::path(data != nullptr ? data : OOMSCOPE_DEFAULT_DATA) / "dsa";
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const char* set : {"minimalloc", "idealloc"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder / set, error)) {
      if (entry.path().extension() == ".csv") files.push_back(entry.path());
    }
  }
  if (files.empty()) std::fprintf(stderr, "bench_packing: no instances in %s: set OOMSCOPE_DATA\n", folder.c_str());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) add_packs(file.stem().string(), read_dsa_csv(file.string()));
}

}  // namespace
}  // namespace oomscope

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  oomscope::add_made("steady_333k", 333'000, false);
  oomscope::add_made("jitter_333k", 333'000, true);
  oomscope::add_made("steady_5m", 5'000'000, false);
  oomscope::add_made("jitter_5m", 5'000'000, true);
  oomscope::add_instances();
  benchmark::RunSpecifiedBenchmarks();
}
