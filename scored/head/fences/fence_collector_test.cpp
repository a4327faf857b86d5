#include "scored/head/fences/fence_collector.hpp"

#include "proto/frames/key_values.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace score::head {
namespace {

constexpr AttemptId kAttempt(99'999);
constexpr FenceCollector::Key kPmi{kAttempt};
constexpr UserId kAlice(1000);
constexpr UserId kBob(1001);

FenceCollector collector_of(std::size_t nodes) {
  FenceCollector collector;
  collector.open(kAttempt, kAlice, nodes);
  return collector;
}

// An entry as nodes of an older release send it.
FenceEntry older(std::uint64_t sequence, std::string key_values) {
  return {.sequence = sequence, .bytes = key_values.size(), .key_values = std::move(key_values)};
}

FenceEntry announced(std::uint64_t sequence, std::uint64_t bytes) {
  return {.sequence = sequence, .takes_pieces = true, .bytes = bytes};
}

FenceEntry held(std::uint64_t sequence, std::string key_values) {
  FenceEntry entry = older(sequence, std::move(key_values));
  entry.takes_pieces = true;
  return entry;
}

// Returns the only result that is sent as a whole; nothing if there is none.
std::optional<SendPiece> whole_of(const Result<FenceCollector::Actions>& actions) {
  if (!actions || actions->empty()) return std::nullopt;
  const auto* piece = std::get_if<SendPiece>(&actions->front().action);
  return piece != nullptr && piece->total == 0 ? std::optional(*piece) : std::nullopt;
}

std::string text_of(const Result<FenceCollector::Actions>& actions) {
  const auto whole = whole_of(actions);
  return whole ? *whole->data : "";
}

TEST(FenceCollector, FinishesInNodeOrderWhenAllHaveEntered) {
  FenceCollector collector = collector_of(3);
  EXPECT_TRUE(collector.enter(kPmi, 2, older(0, "c")).value().empty());
  EXPECT_TRUE(collector.enter(kPmi, 0, older(0, "a")).value().empty());
  const auto done = whole_of(collector.enter(kPmi, 1, older(0, "b")));
  ASSERT_TRUE(done);
  EXPECT_EQ(*done->data, "abc");
  EXPECT_EQ(done->sequence, 0u);
  EXPECT_EQ(done->nodes, (std::vector<std::size_t>{0, 1, 2}));
}

TEST(FenceCollector, CountsANodeThatEntersTwiceOnce) {
  FenceCollector collector = collector_of(2);
  EXPECT_TRUE(collector.enter(kPmi, 0, older(1, "a")).value().empty());
  EXPECT_TRUE(collector.enter(kPmi, 0, older(1, "a")).value().empty());
  EXPECT_EQ(text_of(collector.enter(kPmi, 1, older(1, "b"))), "ab");
}

TEST(FenceCollector, RepeatsResultOncePerConnection) {
  FenceCollector collector = collector_of(1);
  ASSERT_TRUE(collector.enter(kPmi, 0, older(5, "x")));
  EXPECT_EQ(text_of(collector.enter(kPmi, 0, older(5, "x"))), "x");
  EXPECT_TRUE(collector.enter(kPmi, 0, older(5, "x")).error().is(Errc::WrongState));
  collector.link_lost(kAttempt, 0);
  EXPECT_EQ(text_of(collector.enter(kPmi, 0, older(5, "x"))), "x");
  EXPECT_TRUE(collector.enter(kPmi, 0, older(4, "x")).error().is(Errc::WrongState));
}

TEST(FenceCollector, StartsEachFenceEmpty) {
  FenceCollector collector = collector_of(2);
  (void)collector.enter(kPmi, 0, older(0, "a"));
  (void)collector.enter(kPmi, 1, older(0, "b"));
  EXPECT_TRUE(collector.enter(kPmi, 0, older(1, "c")).value().empty());
  EXPECT_EQ(text_of(collector.enter(kPmi, 1, older(1, ""))), "c");
}

TEST(FenceCollector, RefusesNodesInDifferentFences) {
  FenceCollector collector = collector_of(2);
  (void)collector.enter(kPmi, 0, older(3, "a"));
  EXPECT_TRUE(collector.enter(kPmi, 1, older(4, "b")).error().is(Errc::WrongState));
}

TEST(FenceCollector, SkipsNodesWhoseTasksHaveEnded) {
  FenceCollector collector = collector_of(3);
  EXPECT_TRUE(collector.leave(kAttempt, 1).empty());  // no fence is open
  EXPECT_TRUE(collector.leave(kAttempt, 1).empty());
  EXPECT_TRUE(collector.enter(kPmi, 0, older(1, "a")).value().empty());
  EXPECT_EQ(text_of(collector.enter(kPmi, 2, older(1, "c"))), "ac");
  EXPECT_TRUE(collector.enter(kPmi, 0, older(2, "d")).value().empty());
  EXPECT_EQ(text_of(collector.leave(kAttempt, 2)), "d");
  EXPECT_EQ(text_of(collector.enter(kPmi, 0, older(3, "e"))), "e");
}

TEST(FenceCollector, KeepsValuesOfANodeThatLeft) {
  FenceCollector collector = collector_of(2);
  EXPECT_TRUE(collector.enter(kPmi, 1, older(1, "b")).value().empty());
  EXPECT_TRUE(collector.leave(kAttempt, 1).empty());
  EXPECT_EQ(text_of(collector.enter(kPmi, 0, older(1, "a"))), "ab");
  EXPECT_TRUE(collector.leave(kAttempt, 2).empty());
  EXPECT_TRUE(collector.leave(AttemptId(1), 0).empty());
}

TEST(FenceCollector, RefusesUnknownAttemptsAndNodes) {
  FenceCollector collector = collector_of(2);
  EXPECT_TRUE(collector.enter({AttemptId(1)}, 0, older(0, "")).error().is(Errc::NotFound));
  EXPECT_TRUE(collector.enter(kPmi, 2, older(0, "")).error().is(Errc::NotFound));
  EXPECT_TRUE(collector.piece(kPmi, 2, 0, 0, "x").value().empty());
  EXPECT_TRUE(collector.taken(kPmi, 2, 0, 1, 1).value().empty());
  EXPECT_TRUE(collector.close(kAttempt).empty());
  EXPECT_TRUE(collector.enter(kPmi, 0, older(0, "")).error().is(Errc::NotFound));
  EXPECT_EQ(collector.open_fences(), 0u);
}

TEST(FenceCollector, RefusesResultsBeyondOneFrame) {
  FenceCollector collector = collector_of(3);
  ASSERT_TRUE(collector.enter(kPmi, 0, announced(1, proto::kMaxFenceBytes - 10)));
  ASSERT_TRUE(collector.enter(kPmi, 1, announced(1, 10)));
  EXPECT_TRUE(collector.enter(kPmi, 2, announced(1, 1)).error().is(Errc::TooLarge));
  EXPECT_TRUE(collector.enter({kAttempt, true}, 0, announced(1, ~std::uint64_t{}))
                  .error()
                  .is(Errc::TooLarge));
}

// One user enters fences of many attempts and never completes one.
TEST(FenceCollector, HoldsNoMoreThanBudgetOfUser) {
  FenceCollector collector;
  const std::string at_once(proto::kMaxFenceAtOnce, 'k');
  for (std::uint64_t i = 1; i <= 2'000; ++i) {
    collector.open(AttemptId(i), kAlice, 2);
    ASSERT_TRUE(collector.enter({AttemptId(i)}, 0, held(1, at_once)));
  }
  EXPECT_LE(collector.held_bytes(kAlice), FenceCollector::kMaxHeld);
  collector.open(kAttempt, kBob, 2);
  ASSERT_TRUE(collector.enter(kPmi, 0, held(1, at_once)));
  EXPECT_EQ(collector.held_bytes(kBob), at_once.size());
  for (std::uint64_t i = 1; i <= 2'000; ++i) (void)collector.close(AttemptId(i));
  EXPECT_EQ(collector.held_bytes(kAlice), 0u);
}

// Pieces that were dropped beyond the budget are fetched again.
TEST(FenceCollector, FetchesWhatItCouldNotHold) {
  FenceCollector collector;
  const std::string at_once(proto::kMaxFenceAtOnce, 'k');
  for (std::uint64_t i = 1; i <= 600; ++i) {
    collector.open(AttemptId(i), kAlice, 2);
    ASSERT_TRUE(collector.enter({AttemptId(i)}, 0, held(1, at_once)));
  }
  const auto last = collector.enter({AttemptId(600)}, 1, held(1, at_once)).value();
  ASSERT_EQ(last.size(), 2u);
  for (std::size_t node = 0; node < 2; ++node) {
    const auto& fetch = std::get<FetchPiece>(last[node].action);
    EXPECT_EQ(fetch.node, node);
    EXPECT_EQ(fetch.bytes, at_once.size());
  }
}

TEST(FenceCollector, EndsAttemptsOfOlderNodesBeyondBudget) {
  FenceCollector collector;
  const std::string large(4 << 20U, 'k');
  Result<FenceCollector::Actions> entered = FenceCollector::Actions();
  std::uint64_t attempt = 1;
  for (; attempt < 100 && entered; ++attempt) {
    collector.open(AttemptId(attempt), kAlice, 2);
    entered = collector.enter({AttemptId(attempt)}, 0, older(1, large));
  }
  ASSERT_FALSE(entered);
  EXPECT_TRUE(entered.error().is(Errc::TooLarge));
  EXPECT_LE(collector.held_bytes(kAlice), FenceCollector::kMaxWhole);
  collector.open(kAttempt, kBob, 1);
  EXPECT_EQ(text_of(collector.enter(kPmi, 0, older(1, "b"))), "b") << "others have their own";
}

std::size_t count_of(const FenceCollector::Actions& actions, std::uint64_t first) {
  return static_cast<std::size_t>(std::ranges::count_if(
      actions, [first](const auto& due) { return due.key.attempt.value() >= first; }));
}

// The fences of one user take turns, and those of another user do not wait for them.
TEST(FenceCollector, LargeFencesOfOneUserTakeTurns) {
  FenceCollector collector;
  constexpr std::size_t kNodes = 16;
  std::size_t begun = 0;
  for (std::uint64_t attempt = 1; attempt <= 20; ++attempt) {
    collector.open(AttemptId(attempt), kAlice, kNodes);
    for (std::size_t node = 0; node < kNodes; ++node) {
      const auto actions = collector.enter({AttemptId(attempt)}, node, announced(1, 3 << 20U));
      begun += actions.value().empty() ? 0 : 1;
    }
  }
  EXPECT_EQ(begun, FenceCollector::kMaxInFlight / FenceExchange::kMaxInFlight);
  collector.open(kAttempt, kBob, 1);
  EXPECT_FALSE(collector.enter(kPmi, 0, announced(1, 100)).value().empty());
  EXPECT_EQ(count_of(collector.close(AttemptId(1)), begun + 1), 2u) << "the next one is fetched";
  EXPECT_EQ(count_of(collector.close(AttemptId(20)), 1), 0u) << "it had not begun";
}

TEST(FenceCollector, LaterFenceImpliesLostAcknowledgment) {
  FenceCollector collector = collector_of(2);
  (void)collector.enter(kPmi, 0, held(1, "a"));
  ASSERT_EQ(collector.enter(kPmi, 1, held(1, "b")).value().size(), 2u);
  ASSERT_TRUE(collector.taken(kPmi, 0, 1, 2, 2));
  ASSERT_TRUE(collector.enter(kPmi, 0, held(2, "")));
  const auto done = collector.enter(kPmi, 1, held(2, ""));
  ASSERT_TRUE(whole_of(done)) << "an empty fence needs no acknowledgment";
  EXPECT_EQ(whole_of(done)->sequence, 2u);
}

TEST(FenceCollector, FenceThatAllHaveTakenIsNotRepeated) {
  FenceCollector collector = collector_of(1);
  ASSERT_TRUE(collector.enter(kPmi, 0, held(1, "a")));
  EXPECT_FALSE(collector.enter(kPmi, 0, held(1, "a")).value().empty()) << "the link is new";
  EXPECT_TRUE(collector.enter(kPmi, 0, held(1, "a")).error().is(Errc::WrongState));
  ASSERT_TRUE(collector.taken(kPmi, 0, 1, 1, 1));
  EXPECT_EQ(collector.held_bytes(kAlice), 0u);
  collector.link_lost(kAttempt, 0);
  EXPECT_TRUE(collector.enter(kPmi, 0, held(1, "a")).error().is(Errc::WrongState));
}

}  // namespace
}  // namespace score::head
