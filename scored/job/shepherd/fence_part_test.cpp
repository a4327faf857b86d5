#include "scored/job/shepherd/fence_part.hpp"

#include "proto/frames/key_values.hpp"

#include <gtest/gtest.h>

namespace score::shepherd {
namespace {

wire::FenceDone piece(std::uint64_t offset, std::uint64_t total, std::string data) {
  wire::FenceDone message;
  message.set_sequence(1);
  message.set_offset(offset);
  message.set_bytes(total);
  message.set_key_values(std::move(data));
  return message;
}

wire::FenceDone fetching(std::uint64_t offset, std::uint32_t bytes) {
  wire::FenceDone message;
  message.set_sequence(1);
  message.set_offset(offset);
  message.set_fetch(bytes);
  return message;
}

TEST(FencePart, SendsEverythingToOlderHead) {
  FencePart part(true);
  const std::string large(100'000, 'k');
  const auto entered = part.enter({1, large}, false);
  EXPECT_EQ(entered.step(), wire::FenceEnter::WHOLE);
  EXPECT_EQ(entered.key_values(), large);
  EXPECT_TRUE(entered.pmix());
  const auto done = part.take(piece(0, 0, "result"));
  EXPECT_EQ(done.result, "result");
  EXPECT_FALSE(done.answer);
  EXPECT_FALSE(part.resume());
}

TEST(FencePart, AnnouncesLargeValuesAndGivesThemOnRequest) {
  FencePart part(false);
  const std::string large = std::string(70'000, 'a') + std::string(30'000, 'b');
  const auto entered = part.enter({1, large}, true);
  EXPECT_EQ(entered.step(), wire::FenceEnter::ANNOUNCE);
  EXPECT_EQ(entered.bytes(), large.size());
  EXPECT_EQ(entered.key_values(), "");
  const auto answer = part.take(fetching(65'536, 34'464)).answer;
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->step(), wire::FenceEnter::PIECE);
  EXPECT_EQ(answer->offset(), 65'536U);
  EXPECT_EQ(answer->key_values(), large.substr(65'536));
}

TEST(FencePart, SmallValuesTravelAtOnce) {
  FencePart part(false);
  const auto entered = part.enter({1, "kv"}, true);
  EXPECT_EQ(entered.key_values(), "kv");
  EXPECT_EQ(entered.bytes(), 2U);
}

TEST(FencePart, PutsPiecesTogetherAndAcknowledgesThem) {
  FencePart part(false);
  (void)part.enter({1, "mine"}, true);
  const auto first = part.take(piece(0, 10, "01234"));
  EXPECT_FALSE(first.result);
  ASSERT_TRUE(first.answer);
  EXPECT_EQ(first.answer->step(), wire::FenceEnter::TAKEN);
  EXPECT_EQ(first.answer->offset(), 5U);
  EXPECT_EQ(part.resume()->offset(), 5U) << "after a broken link the head knows where to begin";
  EXPECT_EQ(part.take(piece(3, 10, "3456")).answer->offset(), 7U) << "overlaps";
  EXPECT_EQ(part.take(piece(0, 10, "01")).answer->offset(), 7U) << "repeated";
  EXPECT_FALSE(part.take(piece(8, 10, "89")).answer) << "a gap";
  const auto last = part.take(piece(7, 10, "789"));
  EXPECT_EQ(last.result, "0123456789");
  EXPECT_EQ(last.answer->offset(), 10U);
  ASSERT_TRUE(part.resume());
  EXPECT_EQ(part.resume()->step(), wire::FenceEnter::TAKEN) << "it may have been lost";
  EXPECT_FALSE(part.take(piece(7, 10, "789")).result) << "it is over";
}

TEST(FencePart, BeginsAgainWhenResultChanges) {
  FencePart part(false);
  (void)part.enter({1, "mine"}, true);
  (void)part.take(piece(0, 10, "01234"));
  EXPECT_EQ(part.take(piece(0, 4, "mine")).result, "mine");
}

TEST(FencePart, IgnoresOtherFencesAndHostileNumbers) {
  FencePart part(false);
  EXPECT_FALSE(part.take(piece(0, 0, "none")).result);
  EXPECT_FALSE(part.resume());
  (void)part.enter({2, "mine"}, true);
  EXPECT_FALSE(part.take(piece(0, 0, "earlier")).result);
  (void)part.enter({1, "mine"}, true);
  EXPECT_FALSE(part.take(piece(~std::uint64_t{}, 10, "x")).answer);
  EXPECT_FALSE(part.take(piece(0, 1, "beyond its end")).answer);
  EXPECT_FALSE(part.take(piece(0, proto::kMaxFenceBytes + 1, "x")).answer);
  EXPECT_FALSE(part.take(fetching(5, 1)).answer);
  EXPECT_FALSE(part.take(fetching(0, ~std::uint32_t{})).answer);
  EXPECT_EQ(part.take(fetching(2, 100)).answer->key_values(), "ne");
}

}  // namespace
}  // namespace score::shepherd
