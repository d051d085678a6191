#include "evidence/peaks_file.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

constexpr const char* kTwoSteps = R"({"schema": "oomscope.peaks/1", "name": "nightly",
  "command": ["python", "train.py"], "versions": {"torch": "2.11.0", "hip": null}, "settings": {"PYTORCH_ALLOC_CONF": "x"},
  "device": {"name": "a card", "total_bytes": 100}, "peak": {"allocated": 30, "reserved": 60},
  "steps": [{"step": 1, "phases": {"forward": {"allocated": 10, "reserved": 20}}},
            {"step": 2, "phases": {"forward": {"allocated": 12, "reserved": 18}, "backward": {"allocated": 30, "reserved": 60}}}]})";

TEST(Peaks, KeepTheMostOfEachPhaseOverAllSteps) {
  const Result<Peaks> peaks = read_peaks(kTwoSteps, "peaks.json");
  ASSERT_TRUE(peaks);
  EXPECT_EQ(peaks->steps, 2);
  EXPECT_EQ(peaks->command, "python train.py");
  ASSERT_EQ(peaks->phases.size(), 2u);
  EXPECT_EQ(peaks->phases[0], (PhasePeak{.name = "forward", .allocated_bytes = 12, .reserved_bytes = 20}));
  EXPECT_EQ(peaks->all.reserved_bytes, 60);
}

TEST(Peaks, EnvironmentLeavesOutWhatIsNull) {
  const Result<Peaks> peaks = read_peaks(kTwoSteps, "peaks.json");
  ASSERT_TRUE(peaks);
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"torch", "2.11.0"}, {"card name", "a card"}, {"card total_bytes", "100"}, {"PYTORCH_ALLOC_CONF", "x"}};
  EXPECT_EQ(peaks->environment, expected);
}

TEST(Peaks, NegativeAndHugeSizesAreErrors) {
  for (const char* size : {"-1", "18446744073709551615", "1.5", "\"1\"", "null"}) {
    const std::string text = R"({"peak": {"allocated": )" + std::string(size) + R"(, "reserved": 1}, "steps": []})";
    const Result<Peaks> peaks = read_peaks(text, "x");
    ASSERT_FALSE(peaks) << size;
    EXPECT_EQ(peaks.error().code, "peaks-incomplete");
  }
}

TEST(Peaks, TextThatIsNoJsonSaysWhatWritesIt) {
  const Result<Peaks> peaks = read_peaks("CUDA out of memory", "x");
  ASSERT_FALSE(peaks);
  EXPECT_EQ(peaks.error().code, "peaks-not-json");
}

}  // namespace
}  // namespace oomscope
