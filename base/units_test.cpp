#include "base/units.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score {
namespace {

TEST(Bytes, SaturatesInsteadOfWrapping) {
  EXPECT_EQ(Bytes::max() + 1_B, Bytes::max());
  EXPECT_EQ(1_B - 2_B, 0_B);
  EXPECT_EQ(Bytes::max() * 2, Bytes::max());
  EXPECT_EQ(3 * 2_KiB, Bytes(6144));
  EXPECT_EQ(Bytes::max() * 0, 0_B);
}

TEST(ParseBytes, ReadsTheUsualUnits) {
  EXPECT_EQ(parse_bytes("0").value(), 0_B);
  EXPECT_EQ(parse_bytes("4096").value(), 4_KiB);
  EXPECT_EQ(parse_bytes("512M").value(), 512_MiB);
  EXPECT_EQ(parse_bytes("512m").value(), 512_MiB);
  EXPECT_EQ(parse_bytes("2G").value(), 2_GiB);
  EXPECT_EQ(parse_bytes("2GiB").value(), 2_GiB);
  EXPECT_EQ(parse_bytes("2GB").value(), 2_GiB);
  EXPECT_EQ(parse_bytes("2gb").value(), 2_GiB);
  EXPECT_EQ(parse_bytes("4mb").value(), 4_MiB);
  EXPECT_EQ(parse_bytes("2gib").value(), 2_GiB);
  EXPECT_EQ(parse_bytes("1.5G").value(), 1536_MiB);
  EXPECT_EQ(parse_bytes("0.5K").value(), 512_B);
  EXPECT_EQ(parse_bytes("15E").value(), 15 * (1024 * 1024) * (1024 * 1_GiB) * 1);
}

TEST(ParseBytes, RejectsEverythingElse) {
  for (const auto* text : {"", "G", "-1", "+1", " 1", "1 G", "1X", "1Gi", "1GG", "1.G", ".5G",
                           "1..5G", "1.5.5G", "0x10", "1e3", "1.-5G"}) {
    EXPECT_TRUE(parse_bytes(text).error().is(Errc::Malformed)) << text;
  }
  for (const auto* text : {"16E", "18446744073709551616", "99999999999999999999999G"}) {
    EXPECT_TRUE(parse_bytes(text).error().is(Errc::TooLarge)) << text;
  }
}

TEST(FormatBytes, IsExactAndRoundTrips) {
  EXPECT_EQ(format_bytes(512_MiB), "512M");
  EXPECT_EQ(format_bytes(1536_MiB), "1536M");
  EXPECT_EQ(format_bytes(0_B), "0");
  EXPECT_EQ(fmt::format("{:>6}", 1_KiB), "    1K");
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const Bytes bytes((random() >> (random() % 64)) << (random() % 3 * 10));
    EXPECT_EQ(parse_bytes(format_bytes(bytes)).value(), bytes);
  }
  EXPECT_EQ(parse_bytes(format_bytes(Bytes::max())).value(), Bytes::max());
}

TEST(HumanBytes, HasAboutThreeDigits) {
  EXPECT_EQ(human_bytes(999_B), "999");
  EXPECT_EQ(human_bytes(1536_MiB), "1.5G");
  EXPECT_EQ(human_bytes(24'571'432_KiB), "23.4G");
  EXPECT_EQ(human_bytes(118_MiB), "118M");
  EXPECT_EQ(human_bytes(2047_MiB), "1.9G");
  EXPECT_EQ(human_bytes(Bytes::max()), "15.9E");
}

}  // namespace
}  // namespace score
