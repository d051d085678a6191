#include "evidence/small_file.h"

#include <array>

#include "evidence/byte_source.h"

namespace oomscope {
namespace {

constexpr size_t kLargestFileBytes = size_t{64} << 20;  // peaks of a hundred thousand steps

Result<std::string> read_all(const std::string& path) {
  OOM_TRY(const std::unique_ptr<ByteSource> source, open_file_source(path));
  std::array<uint8_t, 65536> piece;
  std::string text;
  while (true) {
    OOM_TRY(const size_t got, source->read(piece));
    if (got == 0) return text;
    text.append(reinterpret_cast<const char*>(piece.data()), got);
    if (text.size() > kLargestFileBytes) {
      return Error{.code = "file-too-large", .what = "error.file-too-large", .where = path, .hint = ""};
    }
  }
}

}  // namespace

Result<std::string> read_small_file(const std::string& path, const std::string& hint) {
  Result<std::string> text = read_all(path);
  if (!text) text.error().hint = hint;
  if (!text && text.error().code == "file-is-a-directory") text.error().what = "system.is-folder";  // no snapshot meant
  return text;
}

}  // namespace oomscope
