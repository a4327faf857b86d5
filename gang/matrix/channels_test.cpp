#include "gang/matrix/channels.hpp"

#include "base/errc.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::gang {
namespace {

NetworkPlace place(std::vector<std::uint32_t> nodes, std::vector<std::uint32_t> cores) {
  NetworkPlace made;
  for (const std::uint32_t node : nodes) {
    made.nodes.emplace_back(node);
    made.cores.push_back(cores);
  }
  return made;
}

TEST(Channels, JobsDoNotShareWhileChannelsSuffice) {
  Channels channels(3);
  EXPECT_EQ(*channels.assign(AttemptId(1), place({0, 1}, {0})), 0);
  EXPECT_EQ(*channels.assign(AttemptId(2), place({0, 1}, {0})), 1);
  EXPECT_EQ(*channels.assign(AttemptId(3), place({0, 1}, {0})), 2);
  EXPECT_TRUE(channels.sharers(AttemptId(1)).empty());
}

TEST(Channels, JobsOfDifferentSlicesShareLeastUsedChannel) {
  Channels channels(2);
  std::vector<int> users(2, 0);
  for (std::uint64_t i = 1; i <= 8; ++i) {
    ++users[*channels.assign(AttemptId(i), place({0}, {0, 1}))];
  }
  EXPECT_EQ(users, (std::vector<int>{4, 4}));
  EXPECT_EQ(channels.sharers(AttemptId(1)).size(), 3U);
}

TEST(Channels, JobsOnOtherNodesDoNotCount) {
  Channels channels(1);
  EXPECT_EQ(*channels.assign(AttemptId(1), place({0}, {0})), 0);
  EXPECT_EQ(*channels.assign(AttemptId(2), place({1}, {0})), 0);
  EXPECT_TRUE(channels.sharers(AttemptId(1)).empty());
}

TEST(Channels, JobsThatMayRunTogetherNeverShare) {
  Channels channels(1);
  ASSERT_TRUE(channels.assign(AttemptId(1), place({0}, {0})));
  const auto refused = channels.assign(AttemptId(2), place({0}, {1}));
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().is(base::Errc::Busy));
}

TEST(Channels, CommonCoreOnAnyNodeAllowsSharing) {
  Channels channels(1);
  NetworkPlace a = place({0, 1}, {0});
  NetworkPlace b = place({0, 1}, {0});
  b.cores[0] = {1};  // at the same time on node 0, but in turn on node 1
  ASSERT_TRUE(channels.assign(AttemptId(1), a));
  EXPECT_EQ(*channels.assign(AttemptId(2), b), 0);
}

TEST(Channels, AttemptKeepsItsChannelAndReleasesItOnce) {
  Channels channels(1);
  EXPECT_EQ(*channels.assign(AttemptId(1), place({0}, {0})), 0);
  EXPECT_EQ(*channels.assign(AttemptId(1), place({0}, {1})), 0);
  channels.release(AttemptId(1));
  channels.release(AttemptId(1));
  EXPECT_EQ(*channels.assign(AttemptId(2), place({0}, {1})), 0);
}

TEST(Channels, ClaimFromBeforeRestartIsRespected) {
  Channels channels(2);
  channels.claim(AttemptId(1), place({0}, {0}), 0);
  EXPECT_EQ(*channels.assign(AttemptId(2), place({0}, {1})), 1);
  channels.claim(AttemptId(3), place({0}, {2}), 7);  // there were more channels then
  EXPECT_FALSE(channels.assign(AttemptId(4), place({0}, {3})));
}

// Random jobs come and go: no two may share a channel on a node without a common core.
TEST(Channels, RandomConcurrentJobsNeverShare) {
  std::mt19937 random(3);
  Channels channels(3);
  std::map<std::uint64_t, std::pair<NetworkPlace, std::uint16_t>> held;
  int shared = 0;
  for (std::uint64_t i = 1; i < 3'000; ++i) {
    const std::uint32_t node = random() % 4;
    const std::uint32_t core = random() % 4;
    NetworkPlace wanted = place({node, node + 1}, {core, core + 1});
    if (const auto got = channels.assign(AttemptId(i), wanted)) {
      for (const auto& [id, other] : held) {
        if (other.second != *got) continue;
        const auto apart = [](std::uint32_t a, std::uint32_t b) { return a > b + 1 || b > a + 1; };
        const bool meets = !apart(node, other.first.nodes[0].value());
        EXPECT_FALSE(meets && apart(core, other.first.cores[0][0]));
        shared += meets ? 1 : 0;
      }
      held[i] = {wanted, *got};
    }
    while (held.size() > random() % 12) {
      channels.release(AttemptId(held.begin()->first));
      held.erase(held.begin());
    }
  }
  EXPECT_GT(shared, 100);
}

}  // namespace
}  // namespace score::gang
