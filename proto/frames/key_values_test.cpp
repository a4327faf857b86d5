#include "proto/frames/key_values.hpp"

#include "base/limits.hpp"
#include "proto/frames/errc.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::proto {
namespace {

std::string batch_of(std::initializer_list<KeyValue> entries) {
  std::string batch;
  for (const auto& [key, value] : entries) {
    EXPECT_TRUE(append_key_value(batch, key, value).has_value());
  }
  return batch;
}

TEST(KeyValues, RoundTripInOrderWithAnyBytes) {
  const std::string binary("a\0b=c\n", 6);
  const std::string batch = batch_of({{"P0-businesscard", "port#1"}, {"k", ""}, {"bin", binary}});
  const auto entries = parse_key_values(batch);
  ASSERT_TRUE(entries.has_value());
  EXPECT_EQ(*entries,
            (std::vector<KeyValue>{{"P0-businesscard", "port#1"}, {"k", ""}, {"bin", binary}}));
}

TEST(KeyValues, ConcatenatedBatchesAreABatch) {
  const std::string all = batch_of({{"a", "1"}}) + batch_of({{"b", "2"}, {"c", "3"}});
  EXPECT_EQ(parse_key_values(all)->size(), 3U);
  EXPECT_TRUE(parse_key_values("")->empty());
}

TEST(KeyValues, AcceptTheLargestAndRejectOneMore) {
  const std::string key(limits::kMaxPmiKeyBytes, 'k');
  const std::string value(kMaxValueBytes, 'v');
  std::string batch = batch_of({{key, value}});
  EXPECT_EQ(parse_key_values(batch)->at(0).value.size(), value.size());
  const std::string before = batch;
  EXPECT_TRUE(append_key_value(batch, key + "k", "").error().is(base::Errc::TooLarge));
  EXPECT_TRUE(append_key_value(batch, "k", value + "v").error().is(base::Errc::TooLarge));
  EXPECT_TRUE(append_key_value(batch, "", "v").error().is(base::Errc::Malformed));
  EXPECT_EQ(batch, before);
}

TEST(KeyValues, TruncationIsRejected) {
  const std::string batch = batch_of({{"key", "value"}});
  for (std::size_t size = 1; size < batch.size(); ++size) {
    const auto entries = parse_key_values(std::string_view(batch).substr(0, size));
    ASSERT_FALSE(entries.has_value()) << size;
    EXPECT_TRUE(entries.error().is(WireErrc::BadMessage));
  }
}

TEST(KeyValues, HostileLengthsAreRejected) {
  using namespace std::string_view_literals;
  EXPECT_FALSE(parse_key_values("\xff\xff\xff\xff"sv).has_value());
  EXPECT_FALSE(parse_key_values("\x00\x00\x01\x00v"sv).has_value());
  EXPECT_FALSE(parse_key_values("\x01\x00\x09\x20kv"sv).has_value());
  EXPECT_EQ(parse_key_values("\x01\x00\x01\x00kv\x01"sv).error().message(),
            "key/value entry cut short at byte 6: malformed message");
}

}  // namespace
}  // namespace score::proto
