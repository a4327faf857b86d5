#include "proto/transport/setup_token.hpp"

#include <gtest/gtest.h>

namespace score::proto {
namespace {

SetupSecret made() {
  const SetupToken token = new_setup_token("node01", base::wall_now());
  return {token, derive_setup_key(random_key(), setup_identity(token))};
}

TEST(SetupToken, RoundTripsThroughText) {
  const SetupSecret secret = made();
  const auto read = parse_setup_secret(format_setup_secret(secret));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->token, secret.token);
  EXPECT_EQ(read->key, secret.key);
  const auto identity = parse_setup_identity(setup_identity(secret.token));
  ASSERT_TRUE(identity);
  EXPECT_EQ(*identity, secret.token);
}

TEST(SetupToken, LastsAnHour) {
  const base::WallTime now = base::wall_now();
  const auto now_s = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch());
  EXPECT_EQ(new_setup_token("node01", now).expires_s, now_s.count() + 3600);
}

TEST(SetupToken, DiffersEachTime) {
  const base::WallTime now = base::wall_now();
  EXPECT_NE(new_setup_token("node01", now), new_setup_token("node01", now));
}

TEST(SetupToken, HasADistinctKey) {
  const Key cluster = random_key();
  const SetupToken token = new_setup_token("node01", base::wall_now());
  SetupToken later = token;
  ++later.expires_s;
  SetupToken other = token;
  other.node = "node02";
  const Key key = derive_setup_key(cluster, setup_identity(token));
  EXPECT_NE(key, derive_setup_key(cluster, setup_identity(later)));
  EXPECT_NE(key, derive_setup_key(cluster, setup_identity(other)));
  EXPECT_NE(key, derive_node_key(cluster, "node01"));
}

TEST(SetupToken, RefusesEveryOtherSpelling) {
  const std::string good = setup_identity({"node01", 0x1234, 0xabcdef});
  ASSERT_TRUE(is_setup_identity(good)) << good;
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(is_setup_identity(good.substr(0, length))) << length;
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char c : {'\0', ' ', ':', 'G', '\n', '/', '\xff'}) {
      std::string other = good;
      other[at] = c;
      if (other == good) continue;
      const auto read = parse_setup_identity(other);
      EXPECT_TRUE(!read || setup_identity(*read) == other) << other;
    }
  }
  for (const char* text :
       {"", "setup:", "setup:::", "setup:a:1:2", "node01",
        "setup:-x:0000000000000001:0000000000000002", "setup:a:ffffffffffffffff:0000000000000002",
        "setup:a:000000000000000A:0000000000000002"}) {
    EXPECT_FALSE(is_setup_identity(text)) << text;
  }
  const std::string secret = format_setup_secret(made());
  for (std::size_t length = 0; length < secret.size(); ++length) {
    EXPECT_FALSE(parse_setup_secret(secret.substr(0, length))) << length;
  }
  EXPECT_FALSE(parse_setup_secret(secret + "0"));
}

}  // namespace
}  // namespace score::proto
