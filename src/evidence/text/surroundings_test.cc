#include "evidence/text/surroundings.h"

#include <gtest/gtest.h>

namespace oomscope {
namespace {

Surroundings of(std::string_view text) {
  Surroundings around;
  look_around(text, around);
  return around;
}

TEST(Surroundings, OfALoader) {
  const Surroundings around =
      of("torchrun --nproc_per_node=8 train.py --num-workers 12\nDataLoader(d, batch_size=64, prefetch_factor=4, "
         "pin_memory=True)\nbatch shape torch.Size([64, 3, 224, 224])\n");
  EXPECT_EQ(around.ranks_on_host, 8);
  EXPECT_EQ(around.num_workers, 12);
  EXPECT_EQ(around.batch_size, 64);
  EXPECT_EQ(around.prefetch_factor, 4);
  EXPECT_EQ(around.pin_memory, true);
  EXPECT_EQ(around.batch_bytes, 64.0 * 3 * 224 * 224 * 4);
}

TEST(Surroundings, RocmIsToldFromTheLineThatDeniesIt) {
  EXPECT_TRUE(of("hipErrorOutOfMemory").is_rocm);
  EXPECT_TRUE(of("ROCM used to build PyTorch: 6.1.40091").is_rocm);
  EXPECT_TRUE(of("torch 2.3.0+rocm6.0").is_rocm);
  EXPECT_FALSE(
      of("CUDA used to build PyTorch: 12.1\nROCM used to build PyTorch: N/A\nHIP runtime version: N/A").is_rocm);
}

TEST(Surroundings, ASettingInForceIsNoHint) {
  EXPECT_TRUE(of("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True").expandable_segments);
  EXPECT_FALSE(
      of("try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation").expandable_segments);
}

TEST(Surroundings, VersionsAndPlaces) {
  EXPECT_EQ(of("PyTorch version: 2.3.1+cu121").torch_version, "2.3.1+cu121");
  EXPECT_EQ(of("ROCM used to build PyTorch: 6.1.4\ntorch==2.4.0").torch_version, "2.4.0");
  EXPECT_TRUE(of("OSError: [WinError 5] C:\\x\\train.py\"").is_windows);
  EXPECT_TRUE(of("/kaggle/working").is_notebook);
  EXPECT_TRUE(of("slurmstepd: error").is_slurm);
}

}  // namespace
}  // namespace oomscope
