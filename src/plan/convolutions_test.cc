#include "plan/convolutions.h"

#include <gtest/gtest.h>

#include <set>

namespace oomscope {
namespace {

std::optional<ConvGeometry> find(int64_t c, int64_t h, int64_t k, int64_t p, int64_t kernel, ConvOver over,
                                 const std::set<int64_t>& channels) {
  const bool are_images = over != ConvOver::sequences;
  const ConvElements elements{.input = c * (are_images ? h * h : h),
                              .output = k * (are_images ? p * p : p),
                              .weight = c * k * (are_images ? kernel * kernel : kernel)};
  return find_geometry(elements, over, channels);
}

TEST(Convolutions, ThreeSizesTellTheGeometry) {
  const std::optional<ConvGeometry> found = find(64, 56, 128, 28, 3, ConvOver::images, {64, 128});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->inputs, 64);
  EXPECT_EQ(found->outputs, 128);
  EXPECT_EQ(found->height, 56);
  EXPECT_EQ(found->output_height, 28);
  EXPECT_EQ(found->kernel_height, 3);
}

TEST(Convolutions, ChannelsDecideBetweenTwoGeometriesOfTheSameSizes) {
  // 96 channels under a 2 × 2 kernel, or 384 of half the side under a point-wise one.
  EXPECT_EQ(find(96, 56, 100, 28, 2, ConvOver::images, {96, 100})->kernel_width, 2);
  EXPECT_EQ(find(96, 56, 100, 28, 2, ConvOver::images, {384, 100})->kernel_width, 1);
}

TEST(Convolutions, JoinedChannelsAreASum) {
  const std::optional<ConvGeometry> found = find(384, 32, 128, 32, 3, ConvOver::images, {128, 256});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->inputs, 384);
}

TEST(Convolutions, SizesOfNoConvolutionHaveNone) {
  EXPECT_FALSE(find_geometry({.input = 1000, .output = 777, .weight = 31}, ConvOver::images, {8, 16, 31}));
  EXPECT_FALSE(find_geometry({.input = 0, .output = 0, .weight = 0}, ConvOver::images, {1}));
}

TEST(Convolutions, SequencesHaveOneSide) {
  const std::optional<ConvGeometry> found = find(256, 1599, 256, 799, 3, ConvOver::sequences, {256});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->width, 1599);
  EXPECT_EQ(found->height, 1);
}

}  // namespace
}  // namespace oomscope
