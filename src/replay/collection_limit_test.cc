#include "replay/collection_limit.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

namespace oomscope {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr LimitRange kBounds{1000 * kMiB, 1700 * kMiB};

// A recording that every limit in [low, high] explains, and whose first difference comes the later the nearer a limit
// is.
struct Recorded {
  int64_t low = 0;
  int64_t high = 0;
  bool misleads = false;
  int tries_left = 1000;
  int tries = 0;

  std::optional<LimitTry> operator()(int64_t limit) {
    if (tries_left == 0) return std::nullopt;
    tries_left -= 1;
    tries += 1;
    if (limit >= low && limit <= high) return LimitTry{.explains = true, .reach = std::numeric_limits<int64_t>::max()};
    const bool is_too_high = limit > high;
    const int64_t off = is_too_high ? limit - high : low - limit;
    return LimitTry{.explains = false, .reach = 100000 - off / kMiB * 20, .is_too_high = is_too_high != misleads};
  }
};

FoundLimit find(Recorded& recorded, bool approaches) {
  return find_collection_limit(kBounds, approaches, [&recorded](int64_t limit) { return recorded(limit); });
}

void expect_found(const FoundLimit& found, const Recorded& recorded) {
  ASSERT_TRUE(found.range.has_value());
  EXPECT_LE(std::abs(found.limit_bytes - recorded.low), 4096);
  EXPECT_GE(found.limit_bytes, recorded.low);
  EXPECT_LE(found.range->low_bytes, recorded.low);
  EXPECT_LE(recorded.low - found.range->low_bytes, 4096);
  EXPECT_GE(found.range->high_bytes, recorded.high);
  EXPECT_LE(found.range->high_bytes - recorded.high, 4096);
}

TEST(CollectionLimit, IsFoundByWhatDifferencesSay) {
  for (int64_t width : {20 * kMiB, 100 * kMiB, kMiB / 100}) {
    Recorded recorded{.low = 1234 * kMiB + 5678, .high = 1234 * kMiB + 5678 + width};
    expect_found(find(recorded, false), recorded);
    EXPECT_LT(recorded.tries, 60);
  }
}

TEST(CollectionLimit, IsApproachedWhereDifferencesMislead) {
  for (int64_t low = 1010; low < 1650; low += 7) {
    Recorded recorded{.low = low * kMiB, .high = (low + 3) * kMiB, .misleads = true};
    expect_found(find(recorded, true), recorded);
    EXPECT_LT(recorded.tries, 150) << low;
  }
}

TEST(CollectionLimit, ElseIsTheOneThatGetsFurthest) {
  Recorded recorded{.low = 1234 * kMiB, .high = 1233 * kMiB};  // none explains it
  const FoundLimit found = find(recorded, true);
  EXPECT_FALSE(found.range.has_value());
  EXPECT_LE(std::abs(found.limit_bytes - 1234 * kMiB), 2 * kMiB);
}

TEST(CollectionLimit, EndsWhereNoMoreMayBeTried) {
  for (int tries = 0; tries < 50; ++tries) {
    Recorded recorded{.low = 1234 * kMiB, .high = 1240 * kMiB, .misleads = true, .tries_left = tries};
    const FoundLimit found = find(recorded, true);
    EXPECT_EQ(recorded.tries, tries);
    EXPECT_GE(found.limit_bytes, kBounds.low_bytes);
    EXPECT_LE(found.limit_bytes, kBounds.high_bytes);
  }
}

}  // namespace
}  // namespace oomscope
