// gzip, zstd and xz, each as a stream: input in pieces of 128 KiB, output straight into the caller's buffer.
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "evidence/byte_source.h"

namespace oomscope {
namespace {

constexpr size_t kInputBytes = size_t{128} << 10;
// Windows above these sizes are refused: a stream of a few bytes could otherwise ask for gigabytes.
constexpr int kMaxZstdWindowLog = 27;
constexpr uint64_t kMaxXzMemoryBytes = uint64_t{256} << 20;

Error damaged(const char* format, const char* why) {
  return Error{"packed-data-damaged",
               "error.packed-data-damaged",
               "error.packed-bytes",
               "error.packed-data-damaged.hint",
               {{"format", format}, {"why", why}}};
}

// Bytes that came before an error are given first; the next read returns it.
Result<size_t> given_or_error(size_t given, const std::optional<Error>& error) {
  if (given == 0 && error.has_value()) return *error;
  return given;
}

// What is left of the packed input, refilled on demand.
class PackedInput {
 public:
  explicit PackedInput(std::unique_ptr<ByteSource> packed) : packed_(std::move(packed)), buffer_(kInputBytes) {}

  Result<bool> refill_if_empty() {
    if (begin_ < end_) return true;
    OOM_TRY(size_t got, packed_->read(buffer_));
    begin_ = 0;
    end_ = got;
    return got > 0;
  }
  [[nodiscard]] uint8_t* data() { return buffer_.data() + begin_; }
  [[nodiscard]] size_t size() const { return end_ - begin_; }
  [[nodiscard]] bool would_wait() { return begin_ == end_ && packed_->would_wait(); }
  void consume(size_t count) { begin_ += count; }

 private:
  std::unique_ptr<ByteSource> packed_;
  std::vector<uint8_t> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(std::unique_ptr<ByteSource> packed) : input_(std::move(packed)) {}
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;
  ~GzipSource() override { (void)inflateEnd(&stream_); }
  bool open() { return inflateInit2(&stream_, 15 + 16) == Z_OK; }

  Result<size_t> read(std::span<uint8_t> out) override {
    if (error_.has_value()) return *error_;
    stream_.next_out = out.data();
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(out.size(), UINT32_MAX));
    size_t wanted = stream_.avail_out;
    while (stream_.avail_out == wanted && !is_over_) {
      OOM_TRY(bool more, input_.refill_if_empty());
      if (!more) {
        is_over_ = true;
        if (!at_member_end_) error_ = damaged("gzip", "error.ends-early");
        break;
      }
      stream_.next_in = input_.data();
      stream_.avail_in = static_cast<uInt>(input_.size());
      int status = inflate(&stream_, Z_NO_FLUSH);
      input_.consume(input_.size() - stream_.avail_in);
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        // Bytes after the last member are padding (gzip -d ignores them too).
        is_over_ = true;
        if (!at_member_end_) error_ = damaged("gzip", stream_.msg != nullptr ? stream_.msg : "error.bad-data");
        break;
      }
      at_member_end_ = status == Z_STREAM_END;
      if (at_member_end_) (void)inflateReset(&stream_);
    }
    return given_or_error(wanted - stream_.avail_out, error_);
  }
  [[nodiscard]] bool would_wait() override { return input_.would_wait(); }

 private:
  PackedInput input_;
  z_stream stream_{};
  bool at_member_end_ = false;
  bool is_over_ = false;
  std::optional<Error> error_;
};

class ZstdSource final : public ByteSource {
 public:
  explicit ZstdSource(std::unique_ptr<ByteSource> packed) : input_(std::move(packed)), stream_(ZSTD_createDStream()) {}
  ZstdSource(const ZstdSource&) = delete;
  ZstdSource& operator=(const ZstdSource&) = delete;
  ~ZstdSource() override { (void)ZSTD_freeDStream(stream_); }
  bool open() {
    return stream_ != nullptr &&
           ZSTD_isError(ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, kMaxZstdWindowLog)) == 0;
  }

  Result<size_t> read(std::span<uint8_t> out) override {
    if (error_.has_value()) return *error_;
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    while (output.pos == 0 && !is_over_) {
      OOM_TRY(bool more, input_.refill_if_empty());
      ZSTD_inBuffer input{input_.data(), more ? input_.size() : 0, 0};
      if (!more && at_frame_end_) {
        is_over_ = true;
        break;
      }
      size_t status = ZSTD_decompressStream(stream_, &output, &input);
      input_.consume(input.pos);
      if (ZSTD_isError(status) != 0) {
        is_over_ = true;
        error_ = damaged("zstd", ZSTD_getErrorName(status));
        break;
      }
      at_frame_end_ = status == 0;
      if (!more && output.pos == 0) {
        is_over_ = true;
        error_ = damaged("zstd", "error.ends-early");
      }
    }
    return given_or_error(output.pos, error_);
  }
  [[nodiscard]] bool would_wait() override { return input_.would_wait(); }

 private:
  PackedInput input_;
  ZSTD_DStream* stream_;
  bool at_frame_end_ = true;
  bool is_over_ = false;
  std::optional<Error> error_;
};

class XzSource final : public ByteSource {
 public:
  explicit XzSource(std::unique_ptr<ByteSource> packed) : input_(std::move(packed)) {}
  XzSource(const XzSource&) = delete;
  XzSource& operator=(const XzSource&) = delete;
  ~XzSource() override { lzma_end(&stream_); }
  bool open() { return lzma_stream_decoder(&stream_, kMaxXzMemoryBytes, LZMA_CONCATENATED) == LZMA_OK; }

  Result<size_t> read(std::span<uint8_t> out) override {
    if (error_.has_value()) return *error_;
    stream_.next_out = out.data();
    stream_.avail_out = out.size();
    while (stream_.avail_out == out.size() && !is_over_) {
      OOM_TRY(bool more, input_.refill_if_empty());
      stream_.next_in = input_.data();
      stream_.avail_in = more ? input_.size() : 0;
      lzma_ret status = lzma_code(&stream_, more ? LZMA_RUN : LZMA_FINISH);
      input_.consume(input_.size() - stream_.avail_in);
      if (status == LZMA_STREAM_END) {
        is_over_ = true;
      } else if (status != LZMA_OK) {
        is_over_ = true;
        error_ = damaged("xz", status == LZMA_MEMLIMIT_ERROR ? "error.unpack-memory" : "error.bad-data");
      }
    }
    return given_or_error(out.size() - stream_.avail_out, error_);
  }
  [[nodiscard]] bool would_wait() override { return input_.would_wait(); }

 private:
  PackedInput input_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool is_over_ = false;
  std::optional<Error> error_;
};

template <class Source>
Result<std::unique_ptr<ByteSource>> opened(std::unique_ptr<ByteSource> packed) {
  std::unique_ptr<Source> source = std::make_unique<Source>(std::move(packed));
  if (!source->open()) return Error{"out-of-memory", "error.cannot-unpack", "error.packed-bytes", ""};
  return std::unique_ptr<ByteSource>(std::move(source));
}

}  // namespace

Packing packing_of(std::span<const uint8_t> first_bytes) {
  constexpr std::array<uint8_t, 2> kGzip = {0x1f, 0x8b};
  constexpr std::array<uint8_t, 4> kZstd = {0x28, 0xb5, 0x2f, 0xfd};
  constexpr std::array<uint8_t, 6> kXz = {0xfd, '7', 'z', 'X', 'Z', 0};
  auto starts_with = [first_bytes](std::span<const uint8_t> magic) {
    return first_bytes.size() >= magic.size() && std::memcmp(first_bytes.data(), magic.data(), magic.size()) == 0;
  };
  if (starts_with(kGzip)) return Packing::gzip;
  if (starts_with(kZstd)) return Packing::zstd;
  if (starts_with(kXz)) return Packing::xz;
  return Packing::none;
}

Result<std::unique_ptr<ByteSource>> unpacking_source(Packing packing, std::unique_ptr<ByteSource> packed) {
  switch (packing) {
    case Packing::gzip: return opened<GzipSource>(std::move(packed));
    case Packing::zstd: return opened<ZstdSource>(std::move(packed));
    case Packing::xz: return opened<XzSource>(std::move(packed));
    case Packing::none: break;
  }
  return packed;
}

}  // namespace oomscope
