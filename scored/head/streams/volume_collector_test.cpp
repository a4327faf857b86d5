#include "scored/head/streams/volume_collector.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

constexpr AttemptId kAttempt{257};

TEST(VolumeCollector, AllNodesGetAllServersWhenComplete) {
  VolumeCollector collector;
  const auto first = collector.ready(kAttempt, 2, 1, "10.0.0.2:7001");
  ASSERT_TRUE(first);
  EXPECT_FALSE(*first);
  const auto second = collector.ready(kAttempt, 2, 0, "10.0.0.1:7000");
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->servers, (std::vector<std::string>{"10.0.0.1:7000", "10.0.0.2:7001"}));
  EXPECT_FALSE((*second)->only_for);
}

TEST(VolumeCollector, RepeatedReportIsAnsweredOnlyToItsNode) {
  VolumeCollector collector;
  ASSERT_TRUE(collector.ready(kAttempt, 2, 0, "10.0.0.1:7000"));
  ASSERT_TRUE(collector.ready(kAttempt, 2, 1, "10.0.0.2:7001"));
  const auto again = collector.ready(kAttempt, 2, 1, "10.0.0.2:7001");
  ASSERT_TRUE(again && *again);
  EXPECT_EQ((*again)->only_for, 1U);
}

// A node that was asked to prepare again has a new server, which all nodes must know.
TEST(VolumeCollector, MovedServerIsSentToAllNodes) {
  VolumeCollector collector;
  ASSERT_TRUE(collector.ready(kAttempt, 2, 0, "10.0.0.1:7000"));
  ASSERT_TRUE(collector.ready(kAttempt, 2, 1, "10.0.0.2:7001"));
  const auto moved = collector.ready(kAttempt, 2, 1, "10.0.0.2:7009");
  ASSERT_TRUE(moved && *moved);
  EXPECT_FALSE((*moved)->only_for);
  EXPECT_EQ((*moved)->servers[1], "10.0.0.2:7009");
}

TEST(VolumeCollector, RefusesInvalidAddresses) {
  VolumeCollector collector;
  for (const char* server :
       {"", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:70000", "host:7000", "10.0.0.1:7000\nkey 00",
        ":7000", "10.0.0.1:7000 ", "10.0.0.1.1:7000", "10.0.0.1:-1"}) {
    EXPECT_FALSE(collector.ready(kAttempt, 2, 0, server)) << server;
  }
  EXPECT_FALSE(collector.ready(kAttempt, 2, 2, "10.0.0.1:7000"));
  EXPECT_EQ(collector.size(), 0U);
}

TEST(VolumeCollector, ForgetsEndedAttempts) {
  VolumeCollector collector;
  ASSERT_TRUE(collector.ready(kAttempt, 2, 0, "10.0.0.1:7000"));
  collector.close(kAttempt);
  EXPECT_EQ(collector.size(), 0U);
  const auto other = collector.ready(kAttempt, 2, 1, "10.0.0.2:7001");
  ASSERT_TRUE(other);
  EXPECT_FALSE(*other);
}

}  // namespace
}  // namespace score::head
