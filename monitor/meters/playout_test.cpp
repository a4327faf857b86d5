#include "monitor/meters/playout.hpp"

#include <gtest/gtest.h>

namespace score::monitor {
namespace {

Playout::Sample taken(TimePoint at) {
  auto sample = std::make_unique<NodeSample>();
  sample->taken = at;
  return sample;
}

std::vector<std::pair<std::uint32_t, TimePoint>> play(Playout& playout, TimePoint until) {
  std::vector<std::pair<std::uint32_t, TimePoint>> played;
  playout.take(until, [&](NodeId node, const NodeSample& sample) {
    played.emplace_back(node.value(), sample.taken);
  });
  return played;
}

TEST(Playout, PlaysWhatCameTogetherInStep) {
  Playout playout;
  for (int i = 0; i < 5; ++i) playout.put(NodeId(2), taken(TimePoint(10s + i * 100ms)));
  EXPECT_TRUE(play(playout, TimePoint(9s)).empty());
  for (int i = 0; i < 5; ++i) {
    const auto played = play(playout, TimePoint(10s + i * 100ms));
    ASSERT_EQ(played.size(), 1U);
    EXPECT_EQ(played[0], std::pair(2U, TimePoint(10s + i * 100ms)));
  }
  EXPECT_TRUE(play(playout, TimePoint(20s)).empty());
}

TEST(Playout, ForgetsANodeAlone) {
  Playout playout;
  playout.put(NodeId(0), taken(TimePoint(1s)));
  playout.put(NodeId(1), taken(TimePoint(1s)));
  playout.forget(NodeId(0));
  playout.forget(NodeId(7));
  EXPECT_EQ(play(playout, TimePoint(1s)).size(), 1U);
}

TEST(Playout, KeepsNoMoreThanSomeOfANodeThatFloods) {
  Playout playout;
  for (int i = 0; i < 10'000; ++i) playout.put(NodeId(0), taken(TimePoint(10s + i * 1ms)));
  EXPECT_LE(play(playout, TimePoint(1s)).size(), 32U);
  EXPECT_LE(play(playout, TimePoint(30s)).size(), 32U);
}

TEST(Playout, GivesPlayedSamplesBackToBeFilledAgain) {
  Playout playout;
  auto sample = playout.spare();
  const NodeSample* const first = sample.get();
  playout.put(NodeId(0), std::move(sample));
  EXPECT_NE(playout.spare().get(), first) << "it still waits";
  ASSERT_EQ(play(playout, TimePoint(1s)).size(), 1U);
  EXPECT_EQ(playout.spare().get(), first);
}

TEST(Playout, DelaysOnlyWhatTravelsTogether) {
  for (const Duration apart : {together(1), together(kMany), together(kMany + 1)}) {
    EXPECT_EQ(Playout::delay(0s, apart), 0s);
    EXPECT_GT(Playout::delay(100ms, apart), apart);
    EXPECT_EQ(Playout::delay(500ms, apart), 0s);
    EXPECT_EQ(Playout::delay(1s, apart), 0s);
  }
  EXPECT_LT(together(kMany), together(kMany + 1));
}

}  // namespace
}  // namespace score::monitor
