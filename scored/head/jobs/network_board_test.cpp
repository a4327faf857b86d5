#include "scored/head/jobs/network_board.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

constexpr AttemptId kAttempt{256};
constexpr std::uint64_t kKey = 77;

NetworkBoard::Job two_nodes() {
  NetworkBoard::Job job;
  job.place.nodes = {NodeId(3), NodeId(5)};
  job.place.cores = {{0, 1}, {0}};
  job.tasks_on_node = {2, 1};
  return job;
}

NetworkBoard::Prepared prepared(std::size_t node, std::string addresses) {
  return {node, kKey, 0, std::move(addresses)};
}

template <class T>
const T* get(const NetworkBoard::Answer& answer) {
  return std::get_if<T>(&answer);
}

TEST(NetworkBoard, SendsAddressesWhenEveryNodeHasReported) {
  NetworkBoard board(4);
  const auto asked = board.request(kAttempt, two_nodes(), 1, kKey);
  ASSERT_NE(get<NetworkBoard::PrepareAll>(asked), nullptr);
  EXPECT_EQ(get<NetworkBoard::PrepareAll>(asked)->key, kKey);
  const auto first = board.prepared(kAttempt, two_nodes(), prepared(1, "CCCCCC"));
  ASSERT_NE(get<std::monostate>(*first), nullptr);
  const auto second = board.prepared(kAttempt, two_nodes(), prepared(0, "AAAAAABBBBBB"));
  ASSERT_NE(get<NetworkBoard::Ready>(*second), nullptr);
  EXPECT_EQ(get<NetworkBoard::Ready>(*second)->addresses, "AAAAAABBBBBBCCCCCC");
  EXPECT_FALSE(get<NetworkBoard::Ready>(*second)->only_for);
}

TEST(NetworkBoard, RepeatedRequestIsAnsweredOnlyToItsNode) {
  NetworkBoard board(4);
  board.request(kAttempt, two_nodes(), 0, kKey);
  // A different node asks before all have prepared; it gets the same key, not the one it brought.
  const auto other = board.request(kAttempt, two_nodes(), 1, 5);
  EXPECT_EQ(get<NetworkBoard::PrepareAll>(other)->key, kKey);
  ASSERT_TRUE(board.prepared(kAttempt, two_nodes(), prepared(1, "CCCCCC")));
  ASSERT_TRUE(board.prepared(kAttempt, two_nodes(), prepared(0, "AAAAAABBBBBB")));
  const auto late = board.request(kAttempt, two_nodes(), 1, 6);
  EXPECT_EQ(get<NetworkBoard::Ready>(late)->only_for, 1U);
  const auto repeated = board.prepared(kAttempt, two_nodes(), prepared(0, "AAAAAABBBBBB"));
  EXPECT_EQ(get<NetworkBoard::Ready>(*repeated)->only_for, 0U);
}

TEST(NetworkBoard, OneRefusalFailsAllNodes) {
  NetworkBoard board(4);
  board.request(kAttempt, two_nodes(), 0, kKey);
  ASSERT_TRUE(board.prepared(kAttempt, two_nodes(), prepared(1, "CCCCCC")));
  const auto refused = board.refused(kAttempt, "node3: no socket");
  EXPECT_EQ(get<NetworkBoard::Failed>(refused)->reason, "node3: no socket");
  const auto late = board.prepared(kAttempt, two_nodes(), prepared(0, "AAAAAABBBBBB"));
  EXPECT_EQ(get<NetworkBoard::Failed>(*late)->only_for, 0U);
  const auto again = board.request(kAttempt, two_nodes(), 1, kKey);
  EXPECT_NE(get<NetworkBoard::Failed>(again), nullptr);
}

TEST(NetworkBoard, RestartedHeadAdoptsTheNodesState) {
  NetworkBoard board(4);
  auto claim = prepared(0, "AAAAAABBBBBB");
  claim.channel = 2;
  const auto first = board.prepared(kAttempt, two_nodes(), claim);
  ASSERT_NE(get<NetworkBoard::PrepareAll>(*first), nullptr);
  EXPECT_EQ(get<NetworkBoard::PrepareAll>(*first)->channel, 2);
  EXPECT_EQ(get<NetworkBoard::PrepareAll>(*first)->key, kKey);
  const auto second = board.prepared(kAttempt, two_nodes(), prepared(1, "CCCCCC"));
  EXPECT_NE(get<NetworkBoard::Ready>(*second), nullptr);
}

TEST(NetworkBoard, RefusesInvalidReports) {
  NetworkBoard board(4);
  board.request(kAttempt, two_nodes(), 0, kKey);
  EXPECT_FALSE(board.prepared(kAttempt, two_nodes(), prepared(0, "short")));
  EXPECT_FALSE(board.prepared(kAttempt, two_nodes(), prepared(2, "")));
  EXPECT_FALSE(board.prepared(kAttempt, two_nodes(), {0, 0, 0, "AAAAAABBBBBB"}));
  EXPECT_FALSE(board.prepared(kAttempt, two_nodes(), {0, kKey, 70'000, "AAAAAABBBBBB"}));
}

// The head died when one node had prepared, and a task of the other node asks the next head first.
TEST(NetworkBoard, NodeWithADifferentKeyPreparesAgain) {
  NetworkBoard board(4);
  board.request(kAttempt, two_nodes(), 0, kKey);
  const auto other_key = board.prepared(kAttempt, two_nodes(), {1, 5, 0, "CCCCCC"});
  ASSERT_NE(get<NetworkBoard::PrepareAll>(*other_key), nullptr);
  EXPECT_EQ(get<NetworkBoard::PrepareAll>(*other_key)->key, kKey);
  ASSERT_TRUE(board.prepared(kAttempt, two_nodes(), prepared(0, "AAAAAABBBBBB")));
  const auto all = board.prepared(kAttempt, two_nodes(), prepared(1, "DDDDDD"));
  ASSERT_NE(get<NetworkBoard::Ready>(*all), nullptr);
  EXPECT_EQ(get<NetworkBoard::Ready>(*all)->addresses, "AAAAAABBBBBBDDDDDD");
}

TEST(NetworkBoard, StateWithContextsWins) {
  NetworkBoard board(4);
  board.request(kAttempt, two_nodes(), 0, kKey);
  ASSERT_TRUE(board.prepared(kAttempt, two_nodes(), prepared(0, "AAAAAABBBBBB")));
  const auto open = board.prepared(kAttempt, two_nodes(), {1, 5, 2, "CCCCCC", true});
  ASSERT_NE(get<NetworkBoard::PrepareAll>(*open), nullptr);
  EXPECT_EQ(get<NetworkBoard::PrepareAll>(*open)->key, 5U);
  EXPECT_EQ(get<NetworkBoard::PrepareAll>(*open)->channel, 2);
  const auto all = board.prepared(kAttempt, two_nodes(), {0, 5, 2, "EEEEEEFFFFFF"});
  ASSERT_NE(get<NetworkBoard::Ready>(*all), nullptr);
  EXPECT_EQ(get<NetworkBoard::Ready>(*all)->addresses, "EEEEEEFFFFFFCCCCCC");
  const auto third = board.prepared(kAttempt, two_nodes(), {1, 7, 2, "CCCCCC", true});
  EXPECT_NE(get<NetworkBoard::Failed>(*third), nullptr) << "two networks are in use";
}

TEST(NetworkBoard, FailsWithoutAFreeChannel) {
  NetworkBoard board(1);
  board.request(kAttempt, two_nodes(), 0, kKey);
  auto beside = two_nodes();
  beside.place.cores = {{2, 3}, {1}};
  const auto refused = board.request(AttemptId(512), beside, 0, kKey);
  ASSERT_NE(get<NetworkBoard::Failed>(refused), nullptr);
  EXPECT_NE(get<NetworkBoard::Failed>(refused)->reason.find("channel"), std::string::npos);
  board.close(kAttempt);
  board.close(AttemptId(512));
  EXPECT_EQ(board.open_attempts(), 0U);
  const auto now = board.request(AttemptId(768), beside, 0, kKey);
  EXPECT_NE(get<NetworkBoard::PrepareAll>(now), nullptr);
}

}  // namespace
}  // namespace score::head
