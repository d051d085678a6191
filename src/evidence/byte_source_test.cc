#include "evidence/byte_source.h"

#include <gtest/gtest.h>
#include <lzma.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cstring>
#include <string>
#include <vector>

namespace oomscope {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes some_bytes(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>((i * i) >> 3);
  return bytes;
}

Bytes gzipped(const Bytes& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes out(deflateBound(&stream, bytes.size()) + 64);
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  (void)deflateEnd(&stream);
  return out;
}

Bytes zstd_packed(const Bytes& bytes) {
  Bytes out(ZSTD_compressBound(bytes.size()));
  out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
  return out;
}

Bytes xz_packed(const Bytes& bytes) {
  Bytes out(lzma_stream_buffer_bound(bytes.size()));
  size_t size = 0;
  EXPECT_EQ(
      lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, nullptr, bytes.data(), bytes.size(), out.data(), &size, out.size()),
      LZMA_OK);
  out.resize(size);
  return out;
}

// All that the source gives, in small reads; `code` is that of the Error at the end, or empty.
Bytes read_all(ByteSource& source, std::string& code) {
  Bytes all;
  Bytes piece(777);
  for (;;) {
    Result<size_t> got = source.read(piece);
    if (!got.has_value()) {
      code = got.error().code;
      return all;
    }
    if (*got == 0) return all;
    all.insert(all.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(*got));
  }
}

Bytes unpacked(const Bytes& packed, std::string& code) {
  Result<std::unique_ptr<ByteSource>> source = unpacking_source(packing_of(packed), memory_source(packed));
  EXPECT_TRUE(source.has_value());
  return read_all(**source, code);
}

TEST(ByteSource, UnpacksEveryFormat) {
  Bytes bytes = some_bytes(300000);
  for (const Bytes& packed : {gzipped(bytes), zstd_packed(bytes), xz_packed(bytes)}) {
    EXPECT_NE(packing_of(packed), Packing::none);
    std::string code;
    EXPECT_EQ(unpacked(packed, code), bytes);
    EXPECT_EQ(code, "");
  }
  EXPECT_EQ(packing_of(bytes), Packing::none);
}

TEST(ByteSource, UnpacksSeveralPartsAsOne) {
  Bytes bytes = some_bytes(5000);
  for (Bytes packed : {gzipped(bytes), zstd_packed(bytes), xz_packed(bytes)}) {
    Bytes twice = packed;
    twice.insert(twice.end(), packed.begin(), packed.end());
    std::string code;
    EXPECT_EQ(unpacked(twice, code).size(), 10000U);
    EXPECT_EQ(code, "");
  }
}

TEST(ByteSource, ACutStreamGivesItsFrontThenAnError) {
  Bytes bytes = some_bytes(300000);
  for (Bytes packed : {gzipped(bytes), zstd_packed(bytes), xz_packed(bytes)}) {
    packed.resize(packed.size() * 3 / 4);
    std::string code;
    Bytes front = unpacked(packed, code);
    EXPECT_EQ(code, "packed-data-damaged");
    ASSERT_LE(front.size(), bytes.size());
    EXPECT_TRUE(std::equal(front.begin(), front.end(), bytes.begin()));
  }
}

TEST(ByteSource, ADamagedByteGivesAnError) {
  Bytes bytes = some_bytes(300000);
  for (Bytes packed : {gzipped(bytes), zstd_packed(bytes), xz_packed(bytes)}) {
    packed[packed.size() / 2] ^= 0x55;
    std::string code;
    Bytes front = unpacked(packed, code);
    EXPECT_TRUE(code == "packed-data-damaged" || front != bytes);
  }
}

TEST(ByteSource, FindsThePickleInAPage) {
  // base64 of 80 04 95 'h' 'i', behind a decoy that is no pickle.
  for (const char* page : {"<script>x = \"gEEE\"; y = [{\"base64\": \"gASVaGk=\"}]</script>", "<p>'gASVaGk'</p>"}) {
    Bytes bytes(page, page + std::strlen(page));
    std::string code;
    std::unique_ptr<ByteSource> source = html_pickle_source(memory_source(bytes));
    EXPECT_EQ(read_all(*source, code), (Bytes{0x80, 0x04, 0x95, 'h', 'i'}));
  }
  Bytes none = {'<', 'p', '>', '"', 'g', 'A'};
  std::string code;
  std::unique_ptr<ByteSource> source = html_pickle_source(memory_source(none));
  EXPECT_TRUE(read_all(*source, code).empty());
}

TEST(ByteSource, APipeSaysWhenReadingItWouldWait) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Result<std::unique_ptr<ByteSource>> opened = open_file_source("/proc/self/fd/" + std::to_string(ends[0]));
  ASSERT_TRUE(opened.has_value());
  const Bytes packed = zstd_packed(some_bytes(1000));
  Result<std::unique_ptr<ByteSource>> source =
      unpacking_source(Packing::zstd, prefixed_source({packed[0]}, *std::move(opened)));
  ASSERT_TRUE(source.has_value());
  const auto put = [&](size_t from, size_t to) { return write(ends[1], packed.data() + from, to - from) > 0; };
  EXPECT_FALSE((*source)->would_wait());
  ASSERT_TRUE(put(1, packed.size()));
  const auto got = [&] {
    Bytes bytes(2000);
    const Result<size_t> count = (*source)->read(bytes);
    return count.has_value() ? static_cast<int64_t>(*count) : -1;
  };
  EXPECT_EQ(got(), 1000);
  EXPECT_TRUE((*source)->would_wait());
  ASSERT_TRUE(put(0, packed.size()));
  EXPECT_FALSE((*source)->would_wait());
  EXPECT_EQ(got(), 1000);
  EXPECT_TRUE((*source)->would_wait());
  (void)close(ends[1]);
  EXPECT_FALSE((*source)->would_wait());
  EXPECT_EQ(got(), 0);
  (void)close(ends[0]);
}

TEST(HtmlSource, SaysWhetherAnotherSnapshotFollows) {
  const std::string text = "gASV" + std::string(200, 'A');
  for (const std::string& page : {"<p>'" + text + "'</p>", "<p>'" + text + "'</p> \"gALlery\" 'gASVaGk='",
                                  "<p>'" + text + "', \"" + text + "\""}) {
    const Bytes bytes(page.begin(), page.end());
    const std::unique_ptr<ByteSource> source = html_pickle_source(memory_source(bytes));
    std::vector<uint8_t> some(32);
    ASSERT_TRUE(source->read(some).has_value());
    EXPECT_EQ(source->has_another(), page.find(text) != page.rfind(text)) << page;
  }
}

}  // namespace
}  // namespace oomscope
