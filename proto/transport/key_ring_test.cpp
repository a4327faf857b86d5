#include "proto/transport/key_ring.hpp"

#include "base/os/fd.hpp"
#include "proto/transport/tls.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

namespace score::proto {
namespace {

Key key_of(std::uint8_t byte) {
  std::array<std::uint8_t, kKeyBytes> bytes{};
  bytes.fill(byte);
  return Key(bytes);
}

TEST(NodeIdentity, HasOneSpelling) {
  EXPECT_EQ(format_node_identity({"node03", 0}), "node03");
  EXPECT_EQ(format_node_identity({"node03", 17}), "node03#17");
  EXPECT_EQ(parse_node_identity("node03"), (NodeIdentity{"node03", 0}));
  EXPECT_EQ(parse_node_identity("node03#17"), (NodeIdentity{"node03", 17}));
  for (const char* wrong :
       {"", "#17", "node03#", "node03#0", "node03#017", "node03#-1", "node03#1#2",
        "node03#18446744073709551616", "no de#1", "setup:node03:1:2"}) {
    EXPECT_FALSE(parse_node_identity(wrong)) << wrong;
  }
}

TEST(HeadIdentity, HasOneSpellingAndADistinctKey) {
  EXPECT_EQ(format_head_identity({1, 17}), "head:1#17");
  EXPECT_EQ(parse_head_identity("head:1#17"), (HeadIdentity{1, 17}));
  EXPECT_EQ(parse_head_identity("head:0#0"), (HeadIdentity{0, 0}));
  for (const char* wrong : {"", "head:", "head:1", "head:2#0", "head:1#", "head:1#017", "head:01#1",
                            "head:-1#1", "node03#1", "head:1#1#1", "xhead:1#1"}) {
    EXPECT_FALSE(parse_head_identity(wrong)) << wrong;
    EXPECT_FALSE(parse_node_identity("head:1#17")) << "no node has such a name";
  }
  const KeyRing ring(key_of(1));
  ASSERT_TRUE(ring.head_key({0, 0}));
  EXPECT_NE(*ring.head_key({0, 0}), *ring.head_key({1, 0}));
  EXPECT_NE(*ring.head_key({0, 0}), *ring.node_key({"head", 0}));
  EXPECT_FALSE(ring.head_key({0, 1})) << "this file has no key of that number";
}

TEST(KeyRing, AttemptSecretsDifferByAttemptNodeAndKey) {
  KeyRing ring(key_of(1));
  const base::AttemptId attempt(257);
  const std::string secret = ring.attempt_secret(attempt, "node01");
  EXPECT_EQ(secret.size(), kKeyBytes);
  EXPECT_TRUE(ring.is_attempt_secret(attempt, "node01", secret));
  EXPECT_FALSE(ring.is_attempt_secret(base::AttemptId(258), "node01", secret));
  EXPECT_FALSE(ring.is_attempt_secret(attempt, "node00", secret));
  EXPECT_FALSE(ring.is_attempt_secret(attempt, "node01", ""));
  EXPECT_FALSE(ring.is_attempt_secret(attempt, "node01", secret.substr(1)));
  EXPECT_FALSE(KeyRing(key_of(2)).is_attempt_secret(attempt, "node01", secret));
  ASSERT_TRUE(ring.rotate(1000));
  EXPECT_TRUE(ring.is_attempt_secret(attempt, "node01", secret)) << "until the old key is retired";
  EXPECT_NE(ring.attempt_secret(attempt, "node01"), secret);
  ring.retire();
  EXPECT_FALSE(ring.is_attempt_secret(attempt, "node01", secret));
}

TEST(KeyRing, RoundTripsThroughText) {
  const std::string one = format_key(key_of(1)) + "\n";
  const std::string two = one + format_key(key_of(2)) + " 1000\n";
  EXPECT_EQ(KeyRing::parse(one.substr(0, 64))->format(), one);
  EXPECT_EQ(KeyRing::parse(two.substr(0, two.size() - 1))->format(), two);
  const std::string again = format_key(key_of(3)) + " 1000";
  for (const std::string& wrong :
       {std::string(), std::string("x"), one, two + again, two + format_key(key_of(3)) + " 999",
        one.substr(0, 64) + " 0", one.substr(0, 64) + " x", one.substr(0, 64) + "  1"}) {
    EXPECT_FALSE(KeyRing::parse(wrong)) << wrong;
  }
}

TEST(KeyRing, DerivesEachGenerationFromItsClusterKey) {
  auto ring = KeyRing::parse(format_key(key_of(1)) + "\n" + format_key(key_of(2)) + " 1000");
  ASSERT_TRUE(ring);
  EXPECT_EQ(ring->node_key({"node03", 0}), derive_node_key(key_of(1), "node03"));
  EXPECT_EQ(ring->node_key({"node03", 999}), derive_node_key(key_of(1), "node03#999"));
  EXPECT_EQ(ring->node_key({"node03", 1000}), derive_node_key(key_of(2), "node03#1000"));
  ring->retire();
  EXPECT_FALSE(ring->node_key({"node03", 999}));
  EXPECT_TRUE(ring->node_key({"node03", 1000}));
}

TEST(KeyRing, AcceptsProofsOfEveryKeyItHas) {
  KeyRing ring(key_of(1));
  const std::string old = prove_head(key_of(1), base::Epoch(7));
  ASSERT_TRUE(ring.rotate(1000));
  EXPECT_TRUE(ring.is_head_proof(base::Epoch(7), old));
  EXPECT_FALSE(ring.is_head_proof(base::Epoch(8), old));
  const std::string job = prove_job(key_of(1), base::JobId(7));
  EXPECT_TRUE(ring.is_job_proof(base::JobId(7), job));
  EXPECT_FALSE(ring.is_job_proof(base::JobId(8), job));
  EXPECT_FALSE(ring.is_job_proof(base::JobId(7), old)) << "of a head";
  EXPECT_FALSE(ring.is_job_proof(base::JobId(7), ""));
  ring.retire();
  EXPECT_FALSE(ring.is_head_proof(base::Epoch(7), old));
  EXPECT_FALSE(ring.is_job_proof(base::JobId(7), job));
}

TEST(KeyRing, NumbersAscendEvenIfTheClockGoesBack) {
  KeyRing ring(key_of(1));
  ASSERT_TRUE(ring.rotate(1000));
  ASSERT_TRUE(ring.rotate(5));
  EXPECT_EQ(ring.newest().number, 1001U);
  while (ring.size() < KeyRing::kMostKeys) ASSERT_TRUE(ring.rotate(5));
  EXPECT_TRUE(ring.rotate(5).error().is(base::Errc::TooLarge));
  EXPECT_EQ(KeyRing::parse(ring.format().substr(0, ring.format().size() - 1))->size(),
            KeyRing::kMostKeys);
  EXPECT_LE(ring.format().size(), kMostKeyFileBytes);
}

TEST(KeyRing, RefusesRandomBytes) {
  std::mt19937 random(3);
  const std::string good = format_key(key_of(1)) + "\n" + format_key(key_of(2)) + " 1000";
  for (int round = 0; round < 2000; ++round) {
    std::string text = good.substr(0, random() % (good.size() + 1));
    if (!text.empty()) text[random() % text.size()] = static_cast<char>(random());
    (void)KeyRing::parse(text);
    (void)parse_node_identity(text);
  }
}

TEST(KeyRingFile, NodeKeyFileHoldsItsGeneration) {
  std::string directory = (std::filesystem::temp_directory_path() / "score_ring_XXXXXX").string();
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/key";
  ASSERT_TRUE(store_key_file(path, format_numbered_key({key_of(4), 1795460469}) + "\n"));
  const auto key = load_node_key(path);
  ASSERT_TRUE(key) << key.error().message();
  EXPECT_EQ(key->key, key_of(4));
  EXPECT_EQ(key->number, 1795460469U);
  ASSERT_TRUE(base::replace_file(path, std::string(2000, 'a'), 0600));
  EXPECT_TRUE(load_node_key(path).error().is(base::Errc::Malformed));
  EXPECT_TRUE(check_key_file(path).error().is(base::Errc::Malformed));
  EXPECT_TRUE(check_key_file(directory + "/none"));
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace score::proto
