#include "base/system_error.h"

#include <cerrno>
#include <cstring>

namespace oomscope {

std::string system_error(int error_number) {
  switch (error_number) {
    case EACCES: return "system.not-permitted";
    case EPERM: return "system.not-allowed";
    case ENOENT: return "system.not-there";
    case ENOTDIR: return "system.no-folder";
    case EISDIR: return "system.is-folder";
    case ENOSPC: return "system.no-space";
    case EDQUOT: return "system.quota";
    case EIO: return "system.input-output";
    case EPIPE: return "system.pipe";
    case EROFS: return "system.read-only";
    case EMFILE: return "system.files";
    case ENOMEM: return "system.memory";
    case EBADF: return "system.descriptor";
    case ENAMETOOLONG: return "system.name-length";
    default: return std::strerror(error_number);
  }
}

}  // namespace oomscope
