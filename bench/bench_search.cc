// Ranking sets of measures: time for more than 100,000 combinations, each of another estimate.
//
//   bin/bench_search
#include <benchmark/benchmark.h>

#include <random>

#include "plan/ranking.h"

namespace oomscope {
namespace {

// As many choices of each group as a job can have: 5 × 6 × 3 × 10 × 4 × 2 × 3 × 4 × 2, times four settings.
constexpr std::array<size_t, kMeasureGroups> kChoices = {2, 4, 2, 3, 6, 5, 3, 10, 4};

void run_ranking(benchmark::State& state) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> factor(0.6, 1.05);
  std::vector<Measure> measures(16);
  for (size_t i = 0; i < measures.size(); ++i) measures[i].rank_cost = 1 + 0.03 * static_cast<double>(i);
  Choices choices;
  for (size_t group = 0; group < kMeasureGroups; ++group) {
    choices[group].push_back(Choice{});
    while (choices[group].size() < kChoices[group]) {
      Choice choice{.measure = &measures[random() % measures.size()], .factor = {}};
      for (double& part : choice.factor) part = factor(random);
      choices[group].push_back(choice);
    }
  }
  const RankingQuestion question{
      .base = {8e9, 10e9, 6e9, 3e9}, .cap = 6e9, .slack = 1.06, .overheads = {1.05, 1.02, 1.04, 1.05}};
  int64_t combinations = 0;
  for (auto _ : state) {
    const Ranking ranking = rank_sets(question, choices);
    combinations = ranking.combinations;
    if (combinations < 100'000 || ranking.best.empty()) state.SkipWithError("too few combinations");
  }
  state.counters["combinations"] = static_cast<double>(combinations);
}

BENCHMARK(run_ranking)->Name("rank_sets")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace oomscope
BENCHMARK_MAIN();
