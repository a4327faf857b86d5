#include "scored/head/streams/network_collector.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

constexpr AttemptId kAttempt{256};
constexpr std::uint64_t kKey = 77;

NetworkCollector::Job two_nodes() {
  NetworkCollector::Job job;
  job.place.nodes = {NodeId(3), NodeId(5)};
  job.place.cores = {{0, 1}, {0}};
  job.tasks_on_node = {2, 1};
  return job;
}

NetworkCollector::Prepared prepared(std::size_t node, std::string addresses) {
  return {node, kKey, 0, std::move(addresses)};
}

template <class T>
const T* get(const NetworkCollector::Answer& answer) {
  return std::get_if<T>(&answer);
}

TEST(NetworkCollector, SendsAddressesWhenEveryNodeHasReported) {
  NetworkCollector collector(4);
  const auto asked = collector.request(kAttempt, two_nodes(), 1, kKey);
  ASSERT_NE(get<NetworkCollector::PrepareAll>(asked), nullptr);
  EXPECT_EQ(get<NetworkCollector::PrepareAll>(asked)->key, kKey);
  const auto first = collector.prepared(kAttempt, two_nodes(), prepared(1, "CCCCCC"));
  ASSERT_NE(get<std::monostate>(*first), nullptr);
  const auto second = collector.prepared(kAttempt, two_nodes(), prepared(0, "AAAAAABBBBBB"));
  ASSERT_NE(get<NetworkCollector::Ready>(*second), nullptr);
  EXPECT_EQ(get<NetworkCollector::Ready>(*second)->addresses, "AAAAAABBBBBBCCCCCC");
  EXPECT_FALSE(get<NetworkCollector::Ready>(*second)->only_for);
}

TEST(NetworkCollector, RepeatedRequestIsAnsweredOnlyToItsNode) {
  NetworkCollector collector(4);
  collector.request(kAttempt, two_nodes(), 0, kKey);
  // A different node asks before all have prepared; it gets the same key, not the one it brought.
  const auto other = collector.request(kAttempt, two_nodes(), 1, 5);
  EXPECT_EQ(get<NetworkCollector::PrepareAll>(other)->key, kKey);
  ASSERT_TRUE(collector.prepared(kAttempt, two_nodes(), prepared(1, "CCCCCC")));
  ASSERT_TRUE(collector.prepared(kAttempt, two_nodes(), prepared(0, "AAAAAABBBBBB")));
  const auto late = collector.request(kAttempt, two_nodes(), 1, 6);
  EXPECT_EQ(get<NetworkCollector::Ready>(late)->only_for, 1U);
  const auto repeated = collector.prepared(kAttempt, two_nodes(), prepared(0, "AAAAAABBBBBB"));
  EXPECT_EQ(get<NetworkCollector::Ready>(*repeated)->only_for, 0U);
}

TEST(NetworkCollector, OneRefusalFailsAllNodes) {
  NetworkCollector collector(4);
  collector.request(kAttempt, two_nodes(), 0, kKey);
  ASSERT_TRUE(collector.prepared(kAttempt, two_nodes(), prepared(1, "CCCCCC")));
  const auto refused = collector.refused(kAttempt, "node3: no socket");
  EXPECT_EQ(get<NetworkCollector::Failed>(refused)->reason, "node3: no socket");
  const auto late = collector.prepared(kAttempt, two_nodes(), prepared(0, "AAAAAABBBBBB"));
  EXPECT_EQ(get<NetworkCollector::Failed>(*late)->only_for, 0U);
  const auto again = collector.request(kAttempt, two_nodes(), 1, kKey);
  EXPECT_NE(get<NetworkCollector::Failed>(again), nullptr);
}

TEST(NetworkCollector, RestartedHeadAdoptsTheNodesState) {
  NetworkCollector collector(4);
  auto claim = prepared(0, "AAAAAABBBBBB");
  claim.channel = 2;
  const auto first = collector.prepared(kAttempt, two_nodes(), claim);
  ASSERT_NE(get<NetworkCollector::PrepareAll>(*first), nullptr);
  EXPECT_EQ(get<NetworkCollector::PrepareAll>(*first)->channel, 2);
  EXPECT_EQ(get<NetworkCollector::PrepareAll>(*first)->key, kKey);
  const auto second = collector.prepared(kAttempt, two_nodes(), prepared(1, "CCCCCC"));
  EXPECT_NE(get<NetworkCollector::Ready>(*second), nullptr);
}

TEST(NetworkCollector, RefusesInvalidReports) {
  NetworkCollector collector(4);
  collector.request(kAttempt, two_nodes(), 0, kKey);
  EXPECT_FALSE(collector.prepared(kAttempt, two_nodes(), prepared(0, "short")));
  EXPECT_FALSE(collector.prepared(kAttempt, two_nodes(), prepared(2, "")));
  EXPECT_FALSE(collector.prepared(kAttempt, two_nodes(), {0, 0, 0, "AAAAAABBBBBB"}));
  EXPECT_FALSE(collector.prepared(kAttempt, two_nodes(), {0, kKey, 70'000, "AAAAAABBBBBB"}));
}

// The head died when one node had prepared, and a task of the other node asks the next head first.
TEST(NetworkCollector, NodeWithADifferentKeyPreparesAgain) {
  NetworkCollector collector(4);
  collector.request(kAttempt, two_nodes(), 0, kKey);
  const auto other_key = collector.prepared(kAttempt, two_nodes(), {1, 5, 0, "CCCCCC"});
  ASSERT_NE(get<NetworkCollector::PrepareAll>(*other_key), nullptr);
  EXPECT_EQ(get<NetworkCollector::PrepareAll>(*other_key)->key, kKey);
  ASSERT_TRUE(collector.prepared(kAttempt, two_nodes(), prepared(0, "AAAAAABBBBBB")));
  const auto all = collector.prepared(kAttempt, two_nodes(), prepared(1, "DDDDDD"));
  ASSERT_NE(get<NetworkCollector::Ready>(*all), nullptr);
  EXPECT_EQ(get<NetworkCollector::Ready>(*all)->addresses, "AAAAAABBBBBBDDDDDD");
}

TEST(NetworkCollector, StateWithContextsWins) {
  NetworkCollector collector(4);
  collector.request(kAttempt, two_nodes(), 0, kKey);
  ASSERT_TRUE(collector.prepared(kAttempt, two_nodes(), prepared(0, "AAAAAABBBBBB")));
  const auto open = collector.prepared(kAttempt, two_nodes(), {1, 5, 2, "CCCCCC", true});
  ASSERT_NE(get<NetworkCollector::PrepareAll>(*open), nullptr);
  EXPECT_EQ(get<NetworkCollector::PrepareAll>(*open)->key, 5U);
  EXPECT_EQ(get<NetworkCollector::PrepareAll>(*open)->channel, 2);
  const auto all = collector.prepared(kAttempt, two_nodes(), {0, 5, 2, "EEEEEEFFFFFF"});
  ASSERT_NE(get<NetworkCollector::Ready>(*all), nullptr);
  EXPECT_EQ(get<NetworkCollector::Ready>(*all)->addresses, "EEEEEEFFFFFFCCCCCC");
  const auto third = collector.prepared(kAttempt, two_nodes(), {1, 7, 2, "CCCCCC", true});
  EXPECT_NE(get<NetworkCollector::Failed>(*third), nullptr) << "two networks are in use";
}

TEST(NetworkCollector, FailsWithoutAFreeChannel) {
  NetworkCollector collector(1);
  collector.request(kAttempt, two_nodes(), 0, kKey);
  auto beside = two_nodes();
  beside.place.cores = {{2, 3}, {1}};
  const auto refused = collector.request(AttemptId(512), beside, 0, kKey);
  ASSERT_NE(get<NetworkCollector::Failed>(refused), nullptr);
  EXPECT_NE(get<NetworkCollector::Failed>(refused)->reason.find("channel"), std::string::npos);
  collector.close(kAttempt);
  collector.close(AttemptId(512));
  EXPECT_EQ(collector.open_attempts(), 0U);
  const auto now = collector.request(AttemptId(768), beside, 0, kKey);
  EXPECT_NE(get<NetworkCollector::PrepareAll>(now), nullptr);
}

}  // namespace
}  // namespace score::head
