#include "cli/write_file.h"

#include <cerrno>
#include <cstdio>

#include "base/system_error.h"

namespace oomscope {

Result<Done> write_file(const std::string& path, const std::string& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const bool is_open = file != nullptr;
  bool is_written = is_open && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (is_open) is_written = std::fclose(file) == 0 && is_written;
  if (is_written) return Done{};
  return Error{
      .code = "output-not-written", .what = system_error(errno), .where = path, .hint = "error.not-written.hint"};
}

}  // namespace oomscope
