#include "pickle/byte_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <vector>

namespace oomscope {
namespace {

// Gives its bytes in pieces of the given size, then ends or fails.
class PiecewiseSource final : public ByteSource {
 public:
  PiecewiseSource(size_t size, size_t piece, bool fails = false) : bytes_(size), piece_(piece), fails_(fails) {
    for (size_t i = 0; i < size; ++i) bytes_[i] = static_cast<uint8_t>(i * 7 + i / 256);
  }
  Result<size_t> read(std::span<uint8_t> out) override {
    size_t count = std::min({out.size(), piece_, bytes_.size() - given_});
    if (count == 0 && fails_) return Error{"broken", "broken", "", ""};
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(given_), count, out.begin());
    given_ += count;
    return count;
  }
  [[nodiscard]] const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
  size_t piece_;
  bool fails_;
  size_t given_ = 0;
};

// Reads everything in steps of `step`, with `step` bytes ensured before each.
std::vector<uint8_t> read_all(ByteWindow& window, size_t step) {
  std::vector<uint8_t> all;
  for (;;) {
    bool enough = window.ensure(step);
    EXPECT_EQ(window.offset(), all.size());
    size_t count = enough ? step : window.available();
    all.insert(all.end(), window.cursor(), window.cursor() + count);
    window.advance(count);
    if (!enough) return all;
  }
}

TEST(ByteWindow, GivesAllBytesInOrderWithAndWithoutReadAhead) {
  for (uint64_t read_ahead_after : {uint64_t{0}, uint64_t{5000}, UINT64_MAX}) {
    for (size_t piece : {size_t{1}, size_t{1000}, size_t{1} << 20}) {
      for (size_t step : {size_t{1}, size_t{13}, size_t{900}}) {
        PiecewiseSource source(20011, piece);
        ByteWindow window(source, 1024, read_ahead_after);
        EXPECT_EQ(read_all(window, step), source.bytes());
      }
    }
  }
}

TEST(ByteWindow, EnsuresMoreThanOneBuffer) {
  PiecewiseSource source(100000, 700);
  ByteWindow window(source, 1024, 0);
  ASSERT_TRUE(window.ensure(60000));
  EXPECT_TRUE(std::equal(window.cursor(), window.cursor() + 60000, source.bytes().begin()));
  EXPECT_FALSE(window.ensure(ByteWindow::kMaxEnsure + 1));
}

TEST(ByteWindow, ZerosFollowTheEnd) {
  PiecewiseSource source(100, 100);
  ByteWindow window(source, 1024);
  EXPECT_FALSE(window.ensure(101));
  EXPECT_EQ(window.available(), 100U);
  EXPECT_TRUE(std::all_of(window.end(), window.end() + ByteWindow::kSlack, [](uint8_t byte) { return byte == 0; }));
}

TEST(ByteWindow, SkipsAcrossBuffers) {
  PiecewiseSource source(50000, 900);
  ByteWindow window(source, 1024, 0);
  EXPECT_TRUE(window.skip(49999));
  ASSERT_TRUE(window.ensure(1));
  EXPECT_EQ(*window.cursor(), source.bytes().back());
  EXPECT_EQ(window.offset(), 49999U);
  EXPECT_FALSE(window.skip(2));
}

TEST(ByteWindow, KeepsTheBytesBeforeAnError) {
  for (uint64_t read_ahead_after : {uint64_t{0}, UINT64_MAX}) {
    PiecewiseSource source(3000, 700, true);
    ByteWindow window(source, 1024, read_ahead_after);
    EXPECT_EQ(read_all(window, 100), source.bytes());
    ASSERT_TRUE(window.source_error().has_value());
    EXPECT_EQ(window.source_error()->code, "broken");
  }
}

// Somebody has it open and writes no more.
class OpenPipe final : public ByteSource {
 public:
  explicit OpenPipe(size_t size) : left_(size) {}
  Result<size_t> read(std::span<uint8_t> out) override {
    EXPECT_GT(left_, 0U) << "waits for ever";
    const size_t count = std::min(out.size(), left_);
    std::fill_n(out.begin(), count, uint8_t{1});
    left_ -= count;
    return count;
  }
  [[nodiscard]] bool would_wait() override { return left_ == 0; }

 private:
  size_t left_;
};

TEST(ByteWindow, DoesNotWaitForMoreThanIsAskedFor) {
  for (uint64_t read_ahead_after : {uint64_t{0}, uint64_t{5000}, UINT64_MAX}) {
    OpenPipe source(10000);
    ByteWindow window(source, 1024, read_ahead_after);
    EXPECT_TRUE(window.skip(9999));
    EXPECT_TRUE(window.ensure(1));
  }
}

class OutOfMemory final : public ByteSource {
 public:
  Result<size_t> read(std::span<uint8_t> out) override {
    if (++reads_ == 8) throw std::bad_alloc();
    std::fill(out.begin(), out.end(), uint8_t{1});
    return out.size();
  }

 private:
  int reads_ = 0;
};

TEST(ByteWindow, WhatTheSourceThrowsReachesTheReader) {
  for (uint64_t read_ahead_after : {uint64_t{0}, UINT64_MAX}) {
    OutOfMemory source;
    ByteWindow window(source, 1024, read_ahead_after);
    EXPECT_TRUE(window.skip(7 * 1024));
    EXPECT_THROW((void)window.skip(1024), std::bad_alloc);
  }
}

TEST(ByteWindow, MayBeDroppedBeforeTheEnd) {
  PiecewiseSource source(1000000, 900);
  ByteWindow window(source, 1024, 0);
  EXPECT_TRUE(window.skip(5000));
}

}  // namespace
}  // namespace oomscope
