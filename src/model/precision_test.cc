#include "model/precision.h"

#include <gtest/gtest.h>

#include "support/trace_builder.h"

namespace oomscope {
namespace {

using Frames = std::vector<SnapshotBuilder::PythonFrame>;

constexpr int64_t kMiB = int64_t{1} << 20;
const SnapshotBuilder::PythonFrame kMain{"/home/u/train.py", 10, "main"};
const SnapshotBuilder::PythonFrame kCall{"/v/site-packages/torch/nn/modules/module.py", 1, "_call_impl"};
const Frames kLinear = {{"/v/site-packages/torch/nn/modules/linear.py", 1, "forward"}, kCall, kMain};
const Frames kLoss = {{"/v/site-packages/torch/nn/functional.py", 3504, "cross_entropy"}, kMain};
const Frames kScale = {{"/v/site-packages/torch/amp/grad_scaler.py", 1, "scale"}, kMain};

// Logits of 2 MiB, then what the loss makes of them.
class Recorded {
 public:
  Recorded& ask(const Frames& frames, int64_t bytes) {
    const uint64_t address = next_;
    next_ += uint64_t{1} << 30;
    builder_.python(frames).segment_alloc(address, 20 * kMiB).alloc(address, bytes);
    live_.emplace_back(address, bytes);
    return *this;
  }

  bool is_16_bit() {
    for (const auto& [address, bytes] : live_) builder_.segment(address, {live_block(bytes)});
    const Snapshot snapshot = builder_.build();
    const Timeline timeline = build_timeline(snapshot, 0, {.round = [](int64_t size) { return size; }});
    const Structure structure = find_structure(timeline);
    return computes_in_16_bits(timeline, structure, find_categories(timeline, structure));
  }

 private:
  SnapshotBuilder builder_;
  std::vector<std::pair<uint64_t, int64_t>> live_;
  uint64_t next_ = 0x7f0000000000;
};

TEST(Precision, ALossOfFourBytesIs32Bit) {
  EXPECT_FALSE(Recorded().ask(kLinear, 2 * kMiB).ask(kLoss, 2 * kMiB).ask(kLoss, 4).is_16_bit());
}

TEST(Precision, ALossOfTwoBytesIs16Bit) {
  EXPECT_TRUE(Recorded().ask(kLinear, 2 * kMiB).ask(kLoss, 2 * kMiB).ask(kLoss, 2).is_16_bit());
}

TEST(Precision, ACopyTwiceAsLargeIsAnUpcast) {
  EXPECT_TRUE(Recorded().ask(kLinear, 2 * kMiB).ask(kLoss, 4 * kMiB).ask(kLoss, 4).is_16_bit());
}

TEST(Precision, AScalerAtWorkIs16Bit) {
  EXPECT_TRUE(Recorded().ask(kLinear, 2 * kMiB).ask(kLoss, 2 * kMiB).ask(kLoss, 4).ask(kScale, 4).is_16_bit());
}

}  // namespace
}  // namespace oomscope
