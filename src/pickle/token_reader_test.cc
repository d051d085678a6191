#include "pickle/token_reader.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>

namespace oomscope {
namespace {

class TextSource final : public ByteSource {
 public:
  explicit TextSource(std::string bytes) : bytes_(std::move(bytes)) {}
  Result<size_t> read(std::span<uint8_t> out) override {
    size_t count = std::min(out.size(), bytes_.size() - given_);
    if (count > 0) std::memcpy(out.data(), bytes_.data() + given_, count);
    given_ += count;
    return count;
  }

 private:
  std::string bytes_;
  size_t given_ = 0;
};

// The first token of `bytes`, whose last member says whether there was one.
struct First {
  Token token;
  std::string text;
  std::string damage;
  std::string refusal;
};

First first_of(std::string bytes) {
  TextSource source(std::move(bytes));
  ByteWindow window(source, 4096);
  TokenReader reader(window);
  First first;
  if (reader.next(first.token)) first.text = first.token.text;
  if (reader.damage().has_value()) first.damage = reader.damage()->what;
  if (reader.refusal().has_value()) first.refusal = reader.refusal()->code;
  return first;
}

std::string bytes_of(std::initializer_list<int> values) {
  std::string bytes;
  for (int value : values) bytes += static_cast<char>(value);
  return bytes;
}

TEST(TokenReader, ReadsIntegersOfEveryForm) {
  EXPECT_EQ(first_of(bytes_of({'K', 200})).token.bits, 200U);
  EXPECT_EQ(first_of(bytes_of({'M', 1, 2})).token.bits, 0x201U);
  EXPECT_EQ(static_cast<int64_t>(first_of(bytes_of({'J', 255, 255, 255, 255})).token.bits), -1);
  EXPECT_TRUE(first_of(bytes_of({'J', 255, 255, 255, 255})).token.is_negative);
  EXPECT_EQ(first_of(bytes_of({0x8a, 0})).token.bits, 0U);
  EXPECT_EQ(first_of(bytes_of({0x8a, 6, 0, 0, 0, 0, 0x34, 0x12})).token.bits, 0x123400000000U);
  EXPECT_EQ(static_cast<int64_t>(first_of(bytes_of({0x8a, 1, 0x80})).token.bits), -128);
  EXPECT_EQ(first_of(bytes_of({0x8b, 2, 0, 0, 0, 1, 1})).token.bits, 0x101U);
}

TEST(TokenReader, ReadsUnsignedIntegersOfNineBytes) {
  First first = first_of(bytes_of({0x8a, 9, 255, 255, 255, 255, 255, 255, 255, 255, 0}));
  EXPECT_EQ(first.token.kind, TokenKind::integer);
  EXPECT_EQ(first.token.bits, UINT64_MAX);
  EXPECT_FALSE(first.token.is_negative);
  EXPECT_EQ(first_of(bytes_of({0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1})).token.kind, TokenKind::opaque);
}

TEST(TokenReader, ReadsRealsAndTexts) {
  EXPECT_EQ(std::bit_cast<double>(first_of(bytes_of({'G', 0x3f, 0xe0, 0, 0, 0, 0, 0, 0})).token.bits), 0.5);
  EXPECT_EQ(first_of(bytes_of({0x8c, 2, 'h', 'i'})).text, "hi");
  EXPECT_EQ(first_of(bytes_of({'X', 2, 0, 0, 0, 'h', 'i'})).text, "hi");
  EXPECT_EQ(first_of(bytes_of({0x8d, 2, 0, 0, 0, 0, 0, 0, 0, 'h', 'i'})).text, "hi");
}

TEST(TokenReader, SkipsTextThatIsTooLong) {
  std::string bytes = bytes_of({'X', 1, 0, 2, 0}) + std::string((2 << 16) + 1, 'x');
  EXPECT_EQ(first_of(bytes).token.kind, TokenKind::opaque);
  EXPECT_EQ(first_of(bytes).damage, "");
}

TEST(TokenReader, SaysWhereTheBytesEnd) {
  EXPECT_EQ(first_of("").damage, "error.pickle.ends-here");
  EXPECT_EQ(first_of("J12").damage, "error.pickle.ends-in-argument");
  EXPECT_EQ(first_of(bytes_of({0x8c, 5, 'h'})).damage, "error.pickle.ends-in-text");
  EXPECT_EQ(first_of(bytes_of({0x8a, 8, 1})).damage, "error.pickle.ends-in-integer");
  EXPECT_EQ(first_of(bytes_of({0xff})).damage, "error.pickle.no-opcode");
}

TEST(TokenReader, RefusesWhatExecutesAndProtocolZero) {
  for (char opcode : std::string("cRbioPQ\x81\x82\x83\x84\x92\x93\x97\x98")) {
    EXPECT_EQ(first_of(std::string(1, opcode)).refusal, "pickle-would-execute");
  }
  for (char opcode : std::string("FILSVgp")) EXPECT_EQ(first_of(std::string(1, opcode)).refusal, "pickle-unsupported");
  EXPECT_EQ(first_of(bytes_of({0x80, 9})).refusal, "pickle-unsupported");
}

}  // namespace
}  // namespace oomscope
