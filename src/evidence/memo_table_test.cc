#include "evidence/memo_table.h"

#include <gtest/gtest.h>

#include <random>

namespace oomscope {
namespace {

// A memo table beside a plain vector that says what it must hold.
class MemoTableTest : public testing::Test {
 protected:
  MemoEntry some_entry() { return MemoEntry{below(5) == 0 ? 0 : static_cast<uint32_t>(random_())}; }
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

  void put(uint32_t index, MemoEntry entry) {
    if (index >= expected_.size()) expected_.resize(size_t{index} + 1);
    expected_[index] = entry;
    memo_.put(index, entry);
  }
  void put_next() { put(memo_.next_index(), some_entry()); }

  // `events` events that make `each`, and now and then a list.
  void run(const EventMemos& each, size_t events) {
    MemoRun run{.first_index = memo_.next_index(),
                .end_index = 0,
                .first_event = static_cast<uint32_t>(stacks_.size()),
                .lists = {},
                .stacks = &stacks_};
    MemoTable::Tail tail = memo_.tail();
    for (size_t event = 0; event < events; ++event) {
      tail.add(each);
      expected_.insert(expected_.end(), each.entries.begin(), each.entries.begin() + each.count);
      const StackId stack{below(1000)};
      stacks_.push_back(stack);
      if (below(3) == 0) continue;
      run.lists[event / 64] |= uint64_t{1} << (event % 64);
      expected_.push_back(MemoEntry::of(MemoTag::stack, static_cast<uint32_t>(stack)));
      tail.add(expected_.back());
      const uint32_t index = below(tail.next());
      ASSERT_EQ(tail.get(index), expected_[index]) << index;
    }
    run.end_index = tail.next();
    memo_.add_run(each, run);
  }

  EventMemos some_memos() {
    EventMemos each;
    each.count = 1 + below(EventMemos::kMost);
    for (uint32_t i = 0; i < each.count; ++i) each.entries[i] = some_entry();
    return each;
  }

  void check_all() {
    ASSERT_EQ(memo_.next_index(), expected_.size());
    for (uint32_t index = 0; index < expected_.size(); ++index) ASSERT_EQ(memo_.get(index), expected_[index]) << index;
    EXPECT_FALSE(memo_.has(expected_.size()));
  }

  std::mt19937 random_{7};
  MemoTable memo_;
  LargeVector<StackId> stacks_;
  std::vector<MemoEntry> expected_;
};

TEST_F(MemoTableTest, HoldsWhatWasPutAndWhatRunsOfEventsMade) {
  const EventMemos kinds[] = {some_memos(), some_memos(), some_memos()};
  for (int i = 0; i < 500; ++i) {
    for (uint32_t puts = below(40); puts > 0; --puts) put_next();
    run(kinds[below(3)], below(5) == 0 ? below(20) : below(MemoRun::kMostEvents + 1));
  }
  check_all();
}

TEST_F(MemoTableTest, WhatRunsMadeTakesLittleMemory) {
  const EventMemos each = some_memos();
  for (int i = 0; i < 1000; ++i) run(each, MemoRun::kMostEvents);
  EXPECT_LT(memo_.memory_bytes(), static_cast<int64_t>(expected_.size()) / 4);
  check_all();
}

TEST_F(MemoTableTest, ContainersAreCompletedWhereverTheyLie) {
  for (int i = 0; i < 300; ++i) {
    const uint32_t index = memo_.next_index();
    put(index, MemoEntry::of(MemoTag::building, 1));
    run(some_memos(), below(MemoRun::kMostEvents));
    expected_[index] = some_entry();
    memo_.complete(index, expected_[index]);
  }
  check_all();
}

TEST_F(MemoTableTest, SkippedEntriesAreOpaque) {
  for (int i = 0; i < 100; ++i) {
    put(memo_.next_index() + below(i % 10 == 0 ? 50000 : 50), some_entry());
    if (i % 3 == 0) run(some_memos(), below(MemoRun::kMostEvents));
  }
  EXPECT_EQ(memo_.overwrites(), 0U);
  check_all();
}

TEST_F(MemoTableTest, AnyEntryMayBeOverwritten) {
  for (int i = 0; i < 200; ++i) {
    put_next();
    run(some_memos(), below(MemoRun::kMostEvents));
    if (i % 20 == 0) put(memo_.next_index() + 100, some_entry());
    if (i < 50) continue;
    for (int k = 0; k < 5; ++k) put(below(memo_.next_index()), some_entry());
  }
  EXPECT_EQ(memo_.overwrites(), 750U);
  check_all();
}

}  // namespace
}  // namespace oomscope
