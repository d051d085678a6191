// What is text and what is for the snapshot reader.
#include "evidence/evidence_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace oomscope {
namespace {

bool is_text(const std::string& bytes) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("oomscope-" + std::to_string(getpid()) + ".log")).string();
  std::ofstream(path, std::ios::binary) << bytes;
  const Result<bool> found = is_text_file(path);
  std::filesystem::remove(path);
  return found && *found;
}

TEST(EvidenceFile, AHoleOfZerosIsNoBinary) {
  EXPECT_TRUE(is_text(std::string(4096, '\0') + "epoch 1\n"));
  EXPECT_TRUE(is_text("epoch 1\n" + std::string(16, '\0') + "epoch 2\n"));
}

TEST(EvidenceFile, BytesOfNoTextAreBinary) {
  EXPECT_FALSE(is_text("\x80\x04 pickle"));
  std::string table;
  for (int i = 0; i < 64; ++i) table += std::string("ab\x01\x00", 4);
  EXPECT_FALSE(is_text(table));
  std::string tar(512, '\0');
  tar.replace(0, 8, "oom.pick").replace(257, 5, "ustar");
  EXPECT_FALSE(is_text(tar));
}

}  // namespace
}  // namespace oomscope
