#include "evidence/byte_source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/system_error.h"

namespace oomscope {
namespace {

class FileSource final : public ByteSource {
 public:
  FileSource(int descriptor, int64_t size_bytes, std::string path)
      : descriptor_(descriptor), size_bytes_(size_bytes), path_(std::move(path)) {}
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override { (void)close(descriptor_); }

  Result<size_t> read(std::span<uint8_t> out) override {
    ssize_t got;
    do {
      got = ::read(descriptor_, out.data(), out.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0)
      return Error{
          "file-unreadable", "error.reading-failed", path_, "error.unreadable.hint", {{"reason", system_error(errno)}}};
    return static_cast<size_t>(got);
  }
  [[nodiscard]] int64_t size_hint_bytes() const override { return size_bytes_; }
  [[nodiscard]] bool would_wait() override {
    pollfd state{.fd = descriptor_, .events = POLLIN, .revents = 0};
    return poll(&state, 1, 0) == 0;
  }

 private:
  int descriptor_;
  int64_t size_bytes_;
  std::string path_;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const uint8_t> bytes)
      : left_(bytes), size_bytes_(static_cast<int64_t>(bytes.size())) {}

  Result<size_t> read(std::span<uint8_t> out) override {
    size_t count = std::min(out.size(), left_.size());
    if (count > 0) std::memcpy(out.data(), left_.data(), count);
    left_ = left_.subspan(count);
    return count;
  }
  [[nodiscard]] int64_t size_hint_bytes() const override { return size_bytes_; }

 private:
  std::span<const uint8_t> left_;
  int64_t size_bytes_;
};

class PrefixedSource final : public ByteSource {
 public:
  PrefixedSource(std::vector<uint8_t> front, std::unique_ptr<ByteSource> rest)
      : front_(std::move(front)), rest_(std::move(rest)) {}

  Result<size_t> read(std::span<uint8_t> out) override {
    if (given_ == front_.size()) return rest_->read(out);
    size_t count = std::min(out.size(), front_.size() - given_);
    std::memcpy(out.data(), front_.data() + given_, count);
    given_ += count;
    return count;
  }
  [[nodiscard]] int64_t size_hint_bytes() const override { return rest_->size_hint_bytes(); }
  [[nodiscard]] bool would_wait() override { return given_ == front_.size() && rest_->would_wait(); }
  [[nodiscard]] bool has_another() override { return rest_->has_another(); }

 private:
  std::vector<uint8_t> front_;
  size_t given_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_file_source(const std::string& path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    int reason = errno;
    if (reason == ENOENT || reason == ENOTDIR) {
      return Error{"file-not-found", "error.file-not-found", path, "error.file-not-found.hint"};
    }
    return Error{
        "file-unreadable", "error.cannot-open", path, "error.unreadable.hint", {{"reason", system_error(reason)}}};
  }
  struct stat status {};
  bool is_directory = fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode);
  if (is_directory) {
    (void)close(descriptor);
    return Error{"file-is-a-directory", "error.file-is-a-directory", path, "error.file-is-a-directory.hint"};
  }
  int64_t size_bytes = S_ISREG(status.st_mode) ? static_cast<int64_t>(status.st_size) : -1;
  return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(descriptor, size_bytes, path));
}

std::unique_ptr<ByteSource> memory_source(std::span<const uint8_t> bytes) {
  return std::make_unique<MemorySource>(bytes);
}

std::unique_ptr<ByteSource> prefixed_source(std::vector<uint8_t> front, std::unique_ptr<ByteSource> rest) {
  return std::make_unique<PrefixedSource>(std::move(front), std::move(rest));
}

Result<std::vector<uint8_t>> peek_source(std::unique_ptr<ByteSource>& source) {
  constexpr size_t kFirstBytes = 512;
  std::vector<uint8_t> front(kFirstBytes);
  size_t filled = 0;
  while (filled < front.size()) {
    Result<size_t> got = source->read(std::span(front).subspan(filled));
    if (!got.has_value()) {
      if (filled == 0) return got.error();
      break;
    }
    if (*got == 0) break;
    filled += *got;
  }
  front.resize(filled);
  source = prefixed_source(front, std::move(source));
  return front;
}

}  // namespace oomscope
