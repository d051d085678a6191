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

TEST(Surroundings, LimitsInForce) {
  const LimitsInForce container = of("docker run --memory=96g --shm-size=32g img\nulimit -n 1048576\n").limits;
  EXPECT_EQ(container.memory_bytes, int64_t{96} << 30);
  EXPECT_EQ(container.shm_bytes, int64_t{32} << 30);
  EXPECT_EQ(container.open_files, 1048576);
  EXPECT_EQ(of("open files                      (-n) 4096\nvm.max_map_count = 2097152\n").limits.mappings, 2097152);
  EXPECT_EQ(of("    Limits:\n      memory:  128Gi\n").limits.memory_bytes, int64_t{128} << 30);
  EXPECT_EQ(of("#SBATCH --mem=256G\n").limits.memory_bytes, int64_t{256} << 30);
  EXPECT_EQ(of("qsub -l select=1:ncpus=4:mem=64gb job.sh\n").limits.memory_bytes, int64_t{64} << 30);
  EXPECT_EQ(of("step 3 gpu mem=12G loss=1\n").limits.memory_bytes, std::nullopt);
  const LimitsInForce engine =
      of("CUDA_VISIBLE_DEVICES=1,3 vllm serve m --gpu-memory-utilization 0.98 --max-model-len 4096 --max-num-seqs 4\n")
          .limits;
  EXPECT_EQ(engine.engine_share, 0.98);
  EXPECT_EQ(engine.engine_tokens, 4096);
  EXPECT_EQ(engine.engine_sequences, 4);
  EXPECT_EQ(engine.visible_cards, "1,3");
}

// As DeepSpeed and Megatron print their arguments.
TEST(Surroundings, DottedArguments) {
  const Surroundings around =
      of("  bfloat16_enabled ............. True\n  zero_optimization_stage ...... 3\n"
         "  micro_batch_size ................................ 1\n  recompute_granularity ........ full\n");
  EXPECT_TRUE(around.in_force.contains("mixed-precision"));
  EXPECT_TRUE(around.in_force.contains("sharding"));
  EXPECT_TRUE(around.in_force.contains("checkpointing"));
  EXPECT_EQ(around.batch_size, 1);
  const Surroundings off = of("  fp16_enabled ............. False\n  zero_optimization_stage ...... 0\n");
  EXPECT_FALSE(off.in_force.contains("mixed-precision"));
  EXPECT_FALSE(off.in_force.contains("sharding"));
}

TEST(Surroundings, SgdByItsConfigurationOrItsFile) {
  EXPECT_TRUE(of("optimizer: SGD(lr=0.1)\n").has_sgd);
  EXPECT_TRUE(of("optim = torch.optim.SGD(model.parameters(), 0.1)\n").has_sgd);
  EXPECT_TRUE(of("  File \"/x/site-packages/torch/optim/sgd.py\", line 90, in step\n").has_sgd);
  EXPECT_FALSE(of("optimizer: AdamW\nsgdr_schedule: true\n").has_sgd);
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
