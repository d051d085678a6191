// What no snapshot says is found all the same: a limit under collection, pools that are gone. Random programs run on
// the engine, which knows; their events go to verify, which is not told.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "replay/verify.h"
#include "support/allocator_rig.h"
#include "support/trace_builder.h"

namespace oomscope {
namespace {

// A program and its recording, from the first request on.
class RecordedProgram {
 public:
  RecordedProgram(const std::string& conf, std::optional<int64_t> limit, uint32_t seed)
      : random_(seed), rules_(rules_named("2.11")), conf_(conf), rig_({settings_of(conf, rules_), rules_, limit}) {}

  // A request like those of real jobs: many small, some large. Frees until `budget` is kept; at an OOM half of all.
  void step(int64_t budget, PoolId pool = {}) {
    std::vector<Object>& objects = objects_[pool];
    while (!objects.empty() && (bytes_in(pool) > budget || below(100) < 45)) free_one(pool);
    const int64_t size = some_size();
    Block* block = rig_.allocator.malloc_in_pool(size, StreamId{0}, pool);
    record_calls();
    if (block == nullptr) {
      builder_.oom(round_size(size, rig_.allocator.settings(), rules_));
      for (size_t i = objects.size() / 2; i > 0; --i) free_one(pool);
      return;
    }
    builder_.alloc(block->address, size);
    objects.push_back({block, size});
  }
  void free_all(PoolId pool) {
    while (!objects_[pool].empty()) free_one(pool);
  }
  // What a MemPool's destructor does.
  void end_pool(PoolId pool) {
    rig_.allocator.private_pool(pool).use_count = 0;
    rig_.allocator.empty_pool(pool);
    record_calls();
  }

  Snapshot snapshot() {
    for (const Segment* segment : rig_.allocator.segments()) add_final(*segment);
    builder_.conf(conf_);
    Snapshot snapshot = builder_.build();
    for (SnapshotSegment& segment : snapshot.segments) segment.is_large = !small_segments_[segment.address];
    return snapshot;
  }

 private:
  struct Object {
    Block* block;
    int64_t size;
  };

  static AllocatorSettings settings_of(const std::string& conf, const RuleSet& rules) {
    const Result<ParsedSettings> parsed = parse_allocator_settings(conf, rules.parser);
    EXPECT_TRUE(parsed.has_value()) << conf;
    return parsed.has_value() ? parsed->settings : AllocatorSettings{};
  }
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }
  int64_t some_size() {
    const uint32_t kind = below(100);
    if (kind < 45) return 1 + below(1 << 20);
    if (kind < 80) return kMiB + below(11 << 20);
    return 8 * kMiB + below(62 << 20);
  }
  int64_t bytes_in(PoolId pool) {
    int64_t bytes = 0;
    for (const Object& object : objects_[pool]) bytes += object.size;
    return bytes;
  }
  void free_one(PoolId pool) {
    std::vector<Object>& objects = objects_[pool];
    std::swap(objects[below(static_cast<uint32_t>(objects.size()))], objects.back());
    builder_.free(objects.back().block->address, objects.back().size);
    rig_.allocator.free(objects.back().block);
    objects.pop_back();
  }
  void record_calls() {
    for (const DriverCall& call : rig_.device.take_calls()) {
      switch (call.kind) {
        case DriverCallKind::allocate: builder_.segment_alloc(call.address, call.size); break;
        case DriverCallKind::release: builder_.segment_free(call.address, call.size); break;
        case DriverCallKind::map: builder_.segment_map(call.address, call.size); break;
        case DriverCallKind::unmap: builder_.segment_unmap(call.address, call.size); break;
        default: break;
      }
    }
  }
  // A segment; of an expandable one each run of mapped pages.
  void add_final(const Segment& segment) {
    std::vector<FinalBlock> blocks;
    uint64_t begin = segment.address;
    const auto end_run = [&] {
      const PrivatePool* owner = segment.pool->owner;
      const PoolId pool = owner == nullptr ? PoolId{} : owner->id;
      if (!blocks.empty()) builder_.segment(begin, blocks, {.expandable = segment.is_expandable, .pool = pool});
      small_segments_[begin] = segment.pool->is_small;
      blocks.clear();
    };
    for (const Block* block = segment.first; block != nullptr; block = block->next) {
      if (!block->mapped) {
        end_run();
        continue;
      }
      if (blocks.empty()) begin = block->address;
      blocks.push_back({.size = block->size,
                        .requested = block->requested_size,
                        .state = block->allocated ? BlockState::active_allocated : BlockState::inactive});
    }
    end_run();
  }

  std::mt19937 random_;
  RuleSet rules_;
  std::string conf_;
  Rig rig_;
  SnapshotBuilder builder_;
  std::map<PoolId, std::vector<Object>> objects_;
  std::map<uint64_t, bool> small_segments_;
};

void expect_exact(const Snapshot& snapshot, const std::unique_ptr<Verification>& found, uint32_t seed) {
  EXPECT_TRUE(found->exact()) << "seed " << seed << ", " << snapshot.traces[0].size_events() << " events";
  if (!found->replay->first_difference()) return;
  const Difference& difference = *found->replay->first_difference();
  ADD_FAILURE() << "seed " << seed << ", event " << difference.event << ": " << difference.what;
}

class HiddenLimit : public testing::TestWithParam<const char*> {};

TEST_P(HiddenLimit, UnderCollectionIsFound) {
  for (uint32_t seed = 1; seed <= 25; ++seed) {
    const int64_t limit = (700 + 37 * int64_t{seed}) * kMiB;
    RecordedProgram program(GetParam(), limit, seed);
    for (int i = 0; i < 1500; ++i) program.step(650 * kMiB);
    const Snapshot snapshot = program.snapshot();
    const std::unique_ptr<Verification> found = verify(snapshot, 0);
    expect_exact(snapshot, found, seed);
    if (!found->limit) continue;
    EXPECT_LE(found->limit->low_bytes, limit) << seed;
    EXPECT_GE(found->limit->high_bytes, limit) << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Thresholds, HiddenLimit,
                         testing::Values("garbage_collection_threshold:0.5", "garbage_collection_threshold:0.6",
                                         "garbage_collection_threshold:0.8",
                                         "garbage_collection_threshold:0.6,max_split_size_mb:64"));

class HiddenPools : public testing::TestWithParam<const char*> {};

// Two pools, of which the first is emptied between and the second is gone before the end; neither is named by an event.
TEST_P(HiddenPools, AreFound) {
  for (uint32_t seed = 1; seed <= 25; ++seed) {
    const PoolId stays{0, 1};
    const PoolId goes{0, 2};
    RecordedProgram program(GetParam(), std::nullopt, seed);
    for (int i = 0; i < 60; ++i) program.step(200 * kMiB);
    for (int i = 0; i < 60; ++i) program.step(150 * kMiB, i % 3 == 0 ? goes : stays);
    for (int i = 0; i < 60; ++i) program.step(200 * kMiB);
    if (seed % 2 == 0) program.end_pool(stays);  // gives back what is free
    for (int i = 0; i < 30; ++i) program.step(150 * kMiB, goes);
    program.free_all(goes);
    program.end_pool(goes);
    for (int i = 0; i < 60; ++i) program.step(250 * kMiB);
    const Snapshot snapshot = program.snapshot();
    expect_exact(snapshot, verify(snapshot, 0), seed);
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, HiddenPools,
                         testing::Values("", "expandable_segments:True", "max_split_size_mb:64"));

}  // namespace
}  // namespace oomscope
