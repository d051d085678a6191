#include "evidence/small_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace oomscope {
namespace {

std::string error_code(const std::string& path) {
  const Result<std::string> text = read_small_file(path, "do this");
  if (text) return "";
  EXPECT_EQ(text.error().hint, "do this");
  return text.error().code;
}

TEST(SmallFile, SaysWhyItCannotBeRead) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("small_file_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  EXPECT_EQ(error_code(folder.string()), "file-is-a-directory");
  EXPECT_EQ(error_code((folder / "none").string()), "file-not-found");
  std::ofstream(folder / "some") << "text";
  const Result<std::string> text = read_small_file((folder / "some").string(), "");
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "text");
  std::filesystem::resize_file(folder / "some", (uintmax_t{64} << 20) + 1);
  EXPECT_EQ(error_code((folder / "some").string()), "file-too-large");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace oomscope
