#include "pmlib/wire/frame.hpp"

#include "pmlib/wire/crc32c_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace score::pm {
namespace {

TEST(Crc32c, MatchesReferenceAtEveryLength) {
  EXPECT_EQ(crc32c(0, "123456789", 9), 0xe3069283u);  // RFC 3720 B.4 style check value
  std::vector<std::uint8_t> bytes(2500);
  std::mt19937 random(1);
  for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
  for (std::size_t n = 0; n <= bytes.size(); n += 1 + n / 64) {
    ASSERT_EQ(crc32c(7, bytes.data(), n), crc32c_reference(7, bytes.data(), n)) << n;
    ASSERT_EQ(crc32c(crc32c(0, bytes.data(), n), bytes.data() + n, bytes.size() - n),
              crc32c(0, bytes.data(), bytes.size()));
  }
}

TEST(Crc32c, TableMatchesReference) {
  const std::vector<std::uint8_t> bytes(300, 0x5a);
  for (std::size_t n = 0; n <= bytes.size(); n += 7) {
    ASSERT_EQ(~crc32c_by_table(~7u, bytes.data(), n), crc32c_reference(7, bytes.data(), n)) << n;
  }
}

TEST(Crc32c, CopiesBytesAtEveryLength) {
  std::vector<std::uint8_t> bytes(2500);
  std::mt19937 random(2);
  for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
  for (std::size_t n = 0; n < bytes.size(); n += 1 + n / 64) {
    std::vector<std::uint8_t> copy(n + 1, 0xee);
    ASSERT_EQ(crc32c_copy(7, copy.data(), bytes.data(), n), crc32c(7, bytes.data(), n)) << n;
    ASSERT_TRUE(std::equal(copy.begin(), copy.end() - 1, bytes.begin())) << n;
    ASSERT_EQ(copy.back(), 0xee) << n;
  }
}

#if defined(__x86_64__)

// Returns true if the upper halves of vector registers are in use. A processor that does not track
// this may always report true.
bool are_upper_halves_in_use() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
  return (low & 1u << 2) != 0;
}

bool tells_what_is_in_use() {
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__builtin_cpu_supports("avx512f") || __get_cpuid_count(0xd, 1, &a, &b, &c, &d) == 0) {
    return false;
  }
  if ((a & 1u << 2) == 0) return false;  // XGETBV of 1
  asm volatile("vzeroupper" ::: "memory");
  return !are_upper_halves_in_use();
}

// Otherwise the application's own arithmetic is slower after each message: a sparse product takes
// half as long again on Zen 5.
TEST(Crc32c, LeavesNoUpperHalvesInUse) {
  if (!tells_what_is_in_use()) GTEST_SKIP() << "the processor does not report it";
  const std::vector<std::uint8_t> bytes(1500, 0xa5);
  std::vector<std::uint8_t> copy(1500);
  for (const std::size_t n : {256, 300, 512, 1455}) {
    asm volatile("vzeroupper" ::: "memory");
    crc32c(0, bytes.data(), n);
    const bool after_sum = are_upper_halves_in_use();
    asm volatile("vzeroupper" ::: "memory");
    crc32c_copy(0, copy.data(), bytes.data(), n);
    const bool after_copy = are_upper_halves_in_use();
    EXPECT_FALSE(after_sum) << n;
    EXPECT_FALSE(after_copy) << n;
  }
}

#endif

TEST(FrameHeader, WordsAndFieldsAgree) {
  FrameHeader h;
  h.kind = FrameKind::Go;
  h.flags = kAckNow;
  h.channel = 0x0102;
  h.length = 0x0304;
  h.key = 0x1112131415161718;
  h.generation = 0x21222324;
  h.source = 0x31323334;
  h.destination = 0x41424344;
  h.number = 0x51525354;
  h.word = 0x61626364;
  h.half0 = 0x7172;
  h.half1 = 0x8182;
  std::array<std::byte, sizeof h> written;
  put_sealed(written.data(), h, 99);
  seal(h, 99);
  EXPECT_EQ(std::memcmp(written.data(), &h, sizeof h), 0);
}

class FrameTest : public testing::Test {
 protected:
  std::vector<std::byte> frame(FrameHeader h, std::size_t payload = 5) {
    std::vector<std::byte> bytes(sizeof h + payload, std::byte{7});
    h.length = static_cast<std::uint16_t>(payload);
    seal(h, crc32c(0, bytes.data() + sizeof h, payload));
    std::memcpy(bytes.data(), &h, sizeof h);
    return bytes;
  }

  FrameHeader good() {
    FrameHeader h;
    h.kind = FrameKind::Message;
    h.key = me.key;
    h.generation = me.generation;
    h.channel = me.channel;
    h.source = 1;
    h.destination = me.rank;
    return h;
  }

  FrameVerdict check(const std::vector<std::byte>& bytes) { return check_frame(bytes, me, out); }

  FrameIdentity me{.key = 0x1122334455667788, .generation = 9, .rank = 2, .size = 4, .channel = 3};
  FrameHeader out;
};

TEST_F(FrameTest, SealedFrameIsAccepted) {
  EXPECT_EQ(check(frame(good())), FrameVerdict::Good);
}

TEST_F(FrameTest, G20DifferentGenerationIsStale) {
  auto h = good();
  h.generation = 8;
  EXPECT_EQ(check(frame(h)), FrameVerdict::Stale);
}

TEST_F(FrameTest, G24DifferentJobChannelOrRankIsForeign) {
  auto h = good();
  h.key ^= 1;
  EXPECT_EQ(check(frame(h)), FrameVerdict::Foreign);
  h = good();
  h.channel = 4;
  EXPECT_EQ(check(frame(h)), FrameVerdict::Foreign);
  h = good();
  h.destination = 3;
  EXPECT_EQ(check(frame(h)), FrameVerdict::Foreign);
}

TEST_F(FrameTest, G23EveryFlippedBitIsNoticed) {
  const auto bytes = frame(good());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto broken = bytes;
    broken[bit / 8] ^= std::byte{static_cast<std::uint8_t>(1u << bit % 8)};
    ASSERT_NE(check(broken), FrameVerdict::Good) << bit;
  }
}

TEST_F(FrameTest, TruncatedAndOversizeFramesAreMalformed) {
  auto bytes = frame(good());
  bytes.push_back(std::byte{0});
  EXPECT_EQ(check(bytes), FrameVerdict::Malformed);
  while (!bytes.empty()) {
    bytes.pop_back();
    if (bytes.size() == sizeof(FrameHeader) + 5) continue;
    ASSERT_EQ(check(bytes), FrameVerdict::Malformed) << bytes.size();
  }
}

TEST_F(FrameTest, UnknownKindsFlagsAndRanksAreMalformed) {
  for (const int kind : {0, 7, 15, 21, 255}) {
    auto h = good();
    h.kind = static_cast<FrameKind>(kind);
    EXPECT_EQ(check(frame(h)), FrameVerdict::Malformed) << kind;
  }
  auto h = good();
  h.flags = 2;
  EXPECT_EQ(check(frame(h)), FrameVerdict::Malformed);
  h = good();
  h.source = me.size;
  EXPECT_EQ(check(frame(h)), FrameVerdict::Malformed);
}

TEST(SipHash, MatchesPublishedVectors) {
  // Key 00 01 .. 0f, message 00 01 .. length - 1; the values are from the reference implementation.
  const SipKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::vector<std::byte> message;
  const std::vector<std::uint64_t> expected{
      0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d,
      0xcf2794e0277187b7, 0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137,
      0x93f5f5799a932462, 0x9e0082df0ba9e4b0};
  for (const std::uint64_t value : expected) {
    EXPECT_EQ(SipHash(key).finish(message), value) << message.size();
    message.push_back(static_cast<std::byte>(message.size()));
  }
  // The longest published vector has 15 bytes; it is checked in pieces, too.
  while (message.size() < 15) message.push_back(static_cast<std::byte>(message.size()));
  EXPECT_EQ(SipHash(key).finish(message), 0xa129ca6149be45e5u);
  SipHash pieces(key);
  pieces.add(std::span(message).first(8));
  EXPECT_EQ(pieces.finish(std::span(message).subspan(8)), 0xa129ca6149be45e5u);
}

class TagTest : public FrameTest {
 protected:
  void SetUp() override { me.auth = FrameAuth::Tag; }

  std::vector<std::byte> tagged(FrameHeader h, std::uint64_t key, std::size_t payload = 37) {
    std::vector<std::byte> bytes(sizeof h + payload, std::byte{7});
    h.length = static_cast<std::uint16_t>(payload);
    const auto body = std::span(bytes).subspan(sizeof h);
    seal_by_tag(h, key, body.first(24), body.subspan(24));
    std::memcpy(bytes.data(), &h, sizeof h);
    return bytes;
  }
};

TEST_F(TagTest, TaggedFrameIsGoodWithoutCarryingKey) {
  const auto bytes = tagged(good(), me.key);
  EXPECT_EQ(check(bytes), FrameVerdict::Good);
  for (std::size_t at = 0; at + sizeof me.key <= bytes.size(); ++at) {
    EXPECT_NE(std::memcmp(&bytes[at], &me.key, sizeof me.key), 0);
  }
}

TEST_F(TagTest, FrameMadeWithoutKeyIsForged) {
  EXPECT_EQ(check(tagged(good(), me.key + 1)), FrameVerdict::Forged);
  EXPECT_EQ(check(frame(good())), FrameVerdict::Forged);  // the key itself is not a tag
  auto h = good();
  h.generation = 8;
  EXPECT_EQ(check(tagged(h, me.key)), FrameVerdict::Stale);
}

TEST_F(TagTest, EveryFlippedBitIsNoticed) {
  const auto bytes = tagged(good(), me.key);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto broken = bytes;
    broken[bit / 8] ^= std::byte{static_cast<std::uint8_t>(1u << bit % 8)};
    ASSERT_NE(check(broken), FrameVerdict::Good) << bit;
  }
}

TEST_F(TagTest, TaggedFrameIsForeignWhereKeysAreExpected) {
  me.auth = FrameAuth::Key;
  EXPECT_EQ(check(tagged(good(), me.key)), FrameVerdict::Foreign);
}

TEST_F(FrameTest, RandomBytesAreNeverGood) {
  std::mt19937_64 random(42);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> bytes(random() % 200);
    for (auto& b : bytes) b = static_cast<std::byte>(random());
    if (!bytes.empty()) bytes[0] = std::byte{kFrameMagic};
    ASSERT_NE(check(bytes), FrameVerdict::Good);
  }
}

}  // namespace
}  // namespace score::pm
