#include "types/gpu_names.h"

#include <gtest/gtest.h>

#include "base/bytes_text.h"

namespace oomscope {
namespace {

std::string name_of(std::string_view text) {
  const Result<GpuMemory> gpu = resolve_gpu(text);
  return gpu ? gpu->name : gpu.error().what;
}

std::string value_of(const Error& error, std::string_view name) {
  for (const auto& [each, text] : error.values) {
    if (each == name) return text;
  }
  return "none";
}

TEST(ResolveGpu, TakesUsualSpellings) {
  for (const std::string_view text :
       {"rtx 4090", "RTX4090", "4090", "NVIDIA GeForce RTX 4090", "rtx-4090", "RTX 4090 24GB"}) {
    EXPECT_EQ(name_of(text), "RTX 4090") << text;
  }
  for (const std::string_view text :
       {"a100-80", "A100 80GB", "NVIDIA A100-SXM4-80GB", "a100 80 GB", "A100 80GB PCIe", "a10080"}) {
    EXPECT_EQ(name_of(text), "A100 80GB") << text;
  }
  EXPECT_EQ(name_of("NVIDIA H100 80GB HBM3"), "H100 80GB");
  EXPECT_EQ(name_of("Tesla T4"), "T4");
  EXPECT_EQ(name_of("NVIDIA H200"), "H200");
  EXPECT_EQ(name_of("RTX 3090 Ti"), "RTX 3090 Ti");
}

TEST(ResolveGpu, MeasuredCardHasItsBytes) {
  const Result<GpuMemory> gpu = resolve_gpu("h200");
  ASSERT_TRUE(gpu.has_value());
  EXPECT_EQ(gpu->total_bytes, 150109880320);
  EXPECT_EQ(gpu->source, GpuMemorySource::measured);
}

TEST(ResolveGpu, SizesAreGiven) {
  const Result<GpuMemory> gpu = resolve_gpu("24GiB");
  ASSERT_TRUE(gpu.has_value());
  EXPECT_EQ(gpu->total_bytes, 24 * kGiB);
  EXPECT_EQ(gpu->source, GpuMemorySource::given);
  EXPECT_EQ(resolve_gpu("8GB")->total_bytes, 8 * kGiB);
  EXPECT_EQ(resolve_gpu("16G")->total_bytes, 16 * kGiB);
  EXPECT_EQ(resolve_gpu("25769803776")->total_bytes, 24 * kGiB);
}

TEST(ResolveGpu, AmbiguousNameListsItsSizes) {
  EXPECT_EQ(name_of("A100"), "error.gpu-ambiguous");
  EXPECT_EQ(value_of(resolve_gpu("A100").error(), "cards"), "A100 40GB / A100 80GB");
  EXPECT_EQ(value_of(resolve_gpu("v100").error(), "card"), "V100 16GB");
}

// What a card can compute is looked up by the name that comes back.
TEST(ResolveGpu, ACardIsNamedAsItself) {
  for (const std::string_view name : {"GTX 1050 Ti", "GTX 1650", "GTX 1070", "GTX 1070 Ti", "GTX 1660 Super",
                                      "RTX 2080 Super", "RTX 2070 Super", "RTX 3070 Ti", "RTX 4060 Laptop"}) {
    EXPECT_EQ(name_of(name), name);
  }
  EXPECT_EQ(compute_capability(name_of("NVIDIA GeForce GTX 1050 Ti")), 61);
  EXPECT_EQ(compute_capability(name_of("NVIDIA GeForce GTX 1650")), 75);
}

TEST(ResolveGpu, UnknownNameSuggests) {
  EXPECT_EQ(name_of("rtx 4900"), "error.gpu-unknown");
  EXPECT_EQ(resolve_gpu("rtx 4900").error().hint, "error.gpu-near");
  EXPECT_EQ(value_of(resolve_gpu("rtx 4900").error(), "card"), "RTX 4090");
  EXPECT_EQ(resolve_gpu("toaster").error().hint, "error.gpu-by-size");
}

TEST(ResolveGpu, BadSizesKeepTheirErrors) {
  EXPECT_EQ(name_of("24XB"), "error.size.unknown-unit");
  EXPECT_EQ(value_of(resolve_gpu("24XB").error(), "unit"), "XB");
  EXPECT_EQ(name_of(""), "error.size.missing");
  EXPECT_EQ(name_of("-1GiB"), "error.size.negative");
  EXPECT_EQ(name_of("24"), "error.gpu-too-small-to-be-meant");
}

TEST(ComputeCapability, OfTheNamesThatToolsPrint) {
  EXPECT_EQ(compute_capability("Tesla V100-SXM2-16GB"), 70);
  EXPECT_EQ(compute_capability("Tesla T4"), 75);
  EXPECT_EQ(compute_capability("Tesla P100-PCIE-16GB"), 60);
  EXPECT_EQ(compute_capability("Tesla K80"), 37);
  EXPECT_EQ(compute_capability("NVIDIA A100-SXM4-80GB"), 80);
  EXPECT_EQ(compute_capability("NVIDIA GeForce RTX 3090"), 86);
  EXPECT_EQ(compute_capability("RTX4090"), 89);
  EXPECT_EQ(compute_capability("GeForce GTX 1080 Ti"), 61);
  EXPECT_EQ(compute_capability("Quadro RTX 6000"), 75);
  EXPECT_EQ(compute_capability("NVIDIA RTX 6000 Ada Generation"), 89);
  EXPECT_EQ(compute_capability("NVIDIA H100 80GB HBM3"), 90);
  EXPECT_EQ(compute_capability("NVIDIA-SMI 535.104"), std::nullopt);
}

TEST(ComputeCapability, OfSeriesWithoutBfloat16IsKnown) {
  for (const auto& [name, capability] : std::vector<std::pair<std::string_view, int>>{{"NVIDIA TITAN V", 70},
                                                                                      {"TITAN RTX", 75},
                                                                                      {"NVIDIA TITAN Xp", 61},
                                                                                      {"GeForce GTX TITAN X", 52},
                                                                                      {"Quadro P5000", 61},
                                                                                      {"Quadro M6000", 52},
                                                                                      {"NVIDIA T1000", 75},
                                                                                      {"NVIDIA GeForce MX450", 75},
                                                                                      {"NVIDIA GeForce GT 1030", 61},
                                                                                      {"Xavier", 72}}) {
    EXPECT_EQ(compute_capability(name), capability) << name;
  }
  EXPECT_EQ(compute_capability("NVIDIA A100-SXM4-80GB"), 80);
  EXPECT_EQ(compute_capability("a card"), std::nullopt);
}

}  // namespace
}  // namespace oomscope
