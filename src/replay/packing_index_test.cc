#include "replay/packing_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace oomscope {
namespace {

TEST(MakePackProblem, RanksFollowTheBeginsAndSkipWhatIsEmpty) {
  const std::vector<Lifetime> lifetimes = {{6, 5, 9, 0}, {4, 1, 6, 0}, {0, 0, 9, 0}, {8, 2, 2, 0}, {2, 6, 7, 0}};
  const PackProblem problem = make_pack_problem(lifetimes);
  EXPECT_EQ(problem.input_of, (std::vector<uint32_t>{1, 0, 4}));
  EXPECT_EQ(problem.items[0].end_rank, 2u);  // [1,6): live when [5,9) begins, gone when [6,7) does
  EXPECT_EQ(problem.items[1].end_rank, 3u);
  EXPECT_EQ(problem.items[2].end_rank, 3u);
  EXPECT_EQ(problem.floor_bytes, 10);
  EXPECT_EQ(problem.unit_bytes, 2);
}

TEST(SubProblem, ClosesUpTheRanks) {
  const std::vector<Lifetime> lifetimes = {{1, 0, 9, 0}, {2, 1, 4, 0}, {4, 2, 5, 0}, {8, 4, 6, 0}};
  const PackProblem rest = sub_problem(make_pack_problem(lifetimes), {false, true, false, true});
  EXPECT_EQ(rest.input_of, (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(rest.items[0].end_rank, 1u);
  EXPECT_EQ(rest.items[1].end_rank, 2u);
  EXPECT_EQ(rest.floor_bytes, 8);
}

// collect() must give what comparing all ranges gives, whatever is in the index.
TEST(OverlapIndex, AgreesWithComparingAllPairs) {
  std::mt19937 random(11);
  for (uint32_t count : {1u, 2u, 63u, 64u, 65u, 700u, 5000u}) {
    std::vector<Lifetime> lifetimes(count);
    for (Lifetime& lifetime : lifetimes) {
      const auto begin = static_cast<uint32_t>(random() % 1000);
      const uint32_t most = random() % 4 == 0 ? 1000 : 10;
      lifetime = {1, begin, begin + 1 + static_cast<uint32_t>(random() % most), 0};
    }
    const PackProblem problem = make_pack_problem(lifetimes);
    OverlapIndex index(problem);
    std::vector<bool> present(count, false);
    std::vector<uint32_t> found;
    for (int step = 0; step < 2000; ++step) {
      const auto item = static_cast<uint32_t>(random() % count);
      if (present[item]) {
        index.erase(item);
        present[item] = false;
        continue;
      }
      if (step % 20 == 0) {
        std::vector<uint32_t> expected;
        const Lifetime& mine = lifetimes[problem.input_of[item]];
        for (uint32_t other = 0; other < count; ++other) {
          const Lifetime& theirs = lifetimes[problem.input_of[other]];
          if (present[other] && theirs.begin < mine.end && mine.begin < theirs.end) expected.push_back(other);
        }
        index.collect(item, &found);
        std::sort(found.begin(), found.end());
        ASSERT_EQ(found, expected);
      }
      index.insert(item);
      present[item] = true;
    }
    for (uint32_t item = 0; item < count; ++item) ASSERT_EQ(index.contains(item), present[item]);
  }
}

}  // namespace
}  // namespace oomscope
