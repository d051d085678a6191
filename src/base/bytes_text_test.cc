#include "base/bytes_text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include <limits>

namespace oomscope {
namespace {

int64_t size_of(std::string_view text) {
  const Result<int64_t> size = parse_size(text);
  return size ? *size : -1;
}

std::string error_of(std::string_view text) {
  const Result<int64_t> size = parse_size(text);
  return size ? "no error" : size.error().what;
}

TEST(ParseSize, EveryUnitIsBinary) {
  EXPECT_EQ(size_of("24GiB"), 24 * kGiB);
  EXPECT_EQ(size_of("512M"), 512 * kMiB);
  EXPECT_EQ(size_of("8GB"), 8 * kGiB);
  EXPECT_EQ(size_of("20 MiB"), 20 * kMiB);
  EXPECT_EQ(size_of("3kb"), 3 * kKiB);
  EXPECT_EQ(size_of("1 tib"), kTiB);
}

TEST(ParseSize, PlainNumberIsBytes) {
  EXPECT_EQ(size_of("150109880320"), 150109880320);
  EXPECT_EQ(size_of("512 B"), 512);
  EXPECT_EQ(size_of(" 7 bytes "), 7);
  EXPECT_EQ(size_of("0"), 0);
}

TEST(ParseSize, DecimalsAreExactAndCutToBytes) {
  EXPECT_EQ(size_of("1.5GiB"), kGiB + kGiB / 2);
  EXPECT_EQ(size_of("0.001KiB"), 1);
  EXPECT_EQ(size_of(".5 MiB"), kMiB / 2);
  EXPECT_EQ(size_of("23.64 GiB"), 25383256719);
  EXPECT_EQ(size_of("0.99999999999999999999999KiB"), 1023);
}

TEST(ParseSize, ReadsWhatFormatMibWrites) {
  EXPECT_EQ(size_of("6,465 MiB"), 6465 * kMiB);
  EXPECT_EQ(size_of("1,024.00 GiB"), kTiB);
  EXPECT_EQ(size_of("1,24 MiB"), -1);
  EXPECT_EQ(size_of(",024"), -1);
}

TEST(ParseSize, ErrorsNameTheReason) {
  EXPECT_EQ(error_of(""), "error.size.missing");
  EXPECT_EQ(error_of("   "), "error.size.missing");
  EXPECT_EQ(error_of("-1GiB"), "error.size.negative");
  EXPECT_EQ(error_of("GiB"), "error.size.no-size");
  EXPECT_EQ(error_of("24XB"), "error.size.unknown-unit");
  EXPECT_EQ(error_of("1.5"), "error.size.fraction");
  EXPECT_EQ(error_of("1."), "error.size.no-size");
}

TEST(ParseSize, OverflowIsAnError) {
  EXPECT_EQ(size_of("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(error_of("9223372036854775808"), "error.size.too-large");
  EXPECT_EQ(error_of("8388608TiB"), "error.size.too-large");
  EXPECT_EQ(size_of("8388607.5TiB"), std::numeric_limits<int64_t>::max() - kTiB / 2 + 1);
}

TEST(FormatBytes, TwoDecimalsInTheLargestUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(20971520), "20.00 MiB");
  EXPECT_EQ(format_bytes(6778000000), "6.31 GiB");
  EXPECT_EQ(format_bytes(kTiB), "1,024.00 GiB");
  EXPECT_EQ(format_bytes(-512), "-512 B");
}

TEST(FormatBytes, RoundingNeverShows1024OfAUnit) {
  EXPECT_EQ(format_bytes(kMiB - 1), "1.00 MiB");
  EXPECT_EQ(format_bytes(kGiB - 1), "1.00 GiB");
}

TEST(FormatBytes, ExtremesDoNotOverflow) {
  EXPECT_EQ(format_bytes(std::numeric_limits<int64_t>::max()), "8,589,934,592.00 GiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<int64_t>::min()), "-8,589,934,592.00 GiB");
}

TEST(MibAddingUp, TheRowsReadAsTheTotalReads) {
  const auto shown = [](std::vector<int64_t> bytes) {
    std::vector<std::string> texts;
    for (const int64_t size : mib_adding_up(bytes)) texts.push_back(format_mib(size));
    return texts;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(shown({}), Texts{});
  EXPECT_EQ(shown({3 * kMiB, 0, 2 * kMiB}), (Texts{"3 MiB", "0 MiB", "2 MiB"}));
  // 1.4 + 2.4 + 3.4 = 7.2: two are written as they are, the one that lost most has a MiB more.
  const int64_t tenth = kMiB / 10;
  EXPECT_EQ(shown({kMiB + 4 * tenth, 2 * kMiB + 4 * tenth, 3 * kMiB + 4 * tenth}), (Texts{"2 MiB", "2 MiB", "3 MiB"}));
  EXPECT_EQ(shown({kMiB + 6 * tenth, 2 * kMiB + 6 * tenth, 3 * kMiB + 6 * tenth}), (Texts{"2 MiB", "3 MiB", "3 MiB"}));
  EXPECT_EQ(shown({kMiB / 2, kMiB / 2}), (Texts{"1 MiB", "<1 MiB"}));  // what is there never reads as nothing
  EXPECT_EQ(shown({512, 512}), (Texts{"<1 MiB", "<1 MiB"}));
  std::mt19937_64 random(7);
  for (int round = 0; round < 1000; ++round) {
    std::vector<int64_t> bytes(1 + random() % 9);
    for (int64_t& size : bytes) size = static_cast<int64_t>(random() % (20 * kMiB));
    const std::vector<int64_t> rows = mib_adding_up(bytes);
    int64_t read = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      read += (rows[i] + kMiB / 2) / kMiB;
      EXPECT_LT(std::abs(rows[i] - bytes[i]), kMiB);
    }
    EXPECT_EQ(read, (std::accumulate(bytes.begin(), bytes.end(), int64_t{0}) + kMiB / 2) / kMiB);
  }
}

TEST(FormatMib, RoundsToNearestAndKeepsSmallVisible) {
  EXPECT_EQ(format_mib(6465 * kMiB), "6,465 MiB");
  EXPECT_EQ(format_mib(0), "0 MiB");
  EXPECT_EQ(format_mib(512), "<1 MiB");
  EXPECT_EQ(format_mib(kMiB / 2), "1 MiB");
}

TEST(FormatSigned, DifferencesCarryTheirSign) {
  EXPECT_EQ(format_mib_signed(12 * kMiB), "+12 MiB");
  EXPECT_EQ(format_mib_signed(-5897 * kMiB), "-5,897 MiB");
  EXPECT_EQ(format_mib_signed(0), "0 MiB");
  EXPECT_EQ(format_bytes_signed(2 * kMiB), "+2.00 MiB");
}

TEST(FormatCount, SeparatesThousands) {
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1468706), "1,468,706");
  EXPECT_EQ(format_count(-1000), "-1,000");
}

TEST(FormatAddress, IsHexadecimal) {
  EXPECT_EQ(format_address(0x7f0a2c000000), "0x7f0a2c000000");
  EXPECT_EQ(format_address(0), "0x0");
}

TEST(FormatPercent, OneDecimal) {
  EXPECT_EQ(format_percent(1, 3), "33.3 %");
  EXPECT_EQ(format_percent(-1, 8), "-12.5 %");
  EXPECT_EQ(format_percent(1, 0), "-");
  EXPECT_EQ(format_percent(std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()), "100.0 %");
}

}  // namespace
}  // namespace oomscope
