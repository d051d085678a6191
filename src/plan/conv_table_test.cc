// Tables of a few lines: 64 channels of 56 × 56 at batches of 4 and 48.
#include "plan/conv_table.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

constexpr ConvGeometry kGeometry{.inputs = 64,
                                 .outputs = 64,
                                 .height = 56,
                                 .width = 56,
                                 .output_height = 56,
                                 .output_width = 56,
                                 .kernel_height = 3,
                                 .kernel_width = 3,
                                 .groups = 1};
constexpr const char* kLine = "f 64 64 56 56 56 56 3 3 1 1 1-4:x1+16,0,i 48-256:a1+147,a1,a15\n";

ConvQuestion at(int64_t batch, ConvPass pass = ConvPass::forward) {
  return {.format = ConvFormat::full, .geometry = kGeometry, .batch = batch, .pass = pass, .evidence = {}};
}

TEST(ConvTable, AMeasuredConvolutionIsSure) {
  const ConvTable table(kLine);
  const std::vector<ConvChoice> choices = table.choices(at(4));
  ASSERT_EQ(choices.size(), 1U);
  EXPECT_EQ(choices[0].kernel, (ConvKernel{.kind = 'x', .number = 1, .extra = 16}));
  EXPECT_DOUBLE_EQ(choices[0].share, 1);
}

TEST(ConvTable, BatchesInsideARunTakeItsKernel) {
  const ConvTable table(kLine);
  EXPECT_EQ(table.choices(at(100))[0].kernel, (ConvKernel{.kind = 'a', .number = 1, .extra = 147}));
  EXPECT_EQ(table.choices(at(3, ConvPass::weight_gradient))[0].kernel.kind, 'i');
}

TEST(ConvTable, OfTwoNeighboursTheOneThatShowsWhatTheRecordingShowsIsNearer) {
  const ConvTable table(
      "f 64 64 48 48 48 48 3 3 1 1 4-4:0,0,0 32-32:x1,0,0\n"
      "f 64 64 50 50 50 50 3 3 1 1 4-4:a1,0,0 32-32:a1,0,0\n");
  ConvQuestion question = at(32);
  const ConvSizes recorded = conv_sizes(kGeometry, ConvFormat::full, 4);
  question.evidence = {{.batch = 4, .scratch = 0}};
  EXPECT_EQ(table.choices(question)[0].kernel.kind, 'x');
  question.evidence = {{.batch = 4, .scratch = recorded.input + recorded.output + recorded.weight}};
  EXPECT_EQ(table.choices(question)[0].kernel.kind, 'a');
}

TEST(ConvTable, AnotherKernelSizeIsNoNeighbour) {
  const ConvTable table("f 64 64 56 56 56 56 1 1 1 1 1-256:0,0,n1\n");
  EXPECT_TRUE(table.choices(at(4)).empty());
}

TEST(ConvTable, ScratchIsAFormulaOfTheOperands) {
  const ConvSizes sizes{.input = 1000, .output = 200, .weight = 30, .batch = 4};
  EXPECT_EQ(scratch_of({.kind = '0'}, sizes), 0);
  EXPECT_EQ(scratch_of({.kind = 'a', .number = 2, .extra = 7}, sizes), 1267);
  EXPECT_EQ(scratch_of({.kind = 'x', .number = 1}, sizes), 1030);
  EXPECT_EQ(scratch_of({.kind = 'y', .number = 1}, sizes), 230);
  EXPECT_EQ(scratch_of({.kind = 'w', .number = 5}, sizes), 150);
  EXPECT_EQ(scratch_of({.kind = 'n', .number = 1}, sizes), 120);
  EXPECT_EQ(scratch_of({.kind = 'i'}, sizes), 2820);
  EXPECT_EQ(scratch_of({.kind = 'q', .number = 0.5}, sizes), 600);
}

TEST(ConvTable, LinesThatAreNoneAreLeftOut) {
  for (const char* text : {"", "\n", "f 1 2\n", "f 64 64 56 56 56 56 3 3 1 1 4-1:x1,0,i\n", "f a b c d e f g h i j k\n",
                           "f 64 64 56 56 56 56 3 3 1 1 1-4:x1,0\n"}) {
    EXPECT_TRUE(ConvTable(text).choices(at(4)).empty()) << text;
  }
}

TEST(ConvTable, TheProgramCarriesOne) { EXPECT_FALSE(ConvTable::measured().choices(at(4)).empty()); }

}  // namespace
}  // namespace oomscope
