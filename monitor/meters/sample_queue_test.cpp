#include "monitor/meters/sample_queue.hpp"

#include <gtest/gtest.h>

namespace score::monitor {
namespace {

SampleQueue::Sample taken(TimePoint at) {
  auto sample = std::make_unique<NodeSample>();
  sample->taken = at;
  return sample;
}

std::vector<std::pair<std::uint32_t, TimePoint>> play(SampleQueue& queue, TimePoint until) {
  std::vector<std::pair<std::uint32_t, TimePoint>> played;
  queue.take(until, [&](NodeId node, const NodeSample& sample) {
    played.emplace_back(node.value(), sample.taken);
  });
  return played;
}

TEST(SampleQueue, DeliversBatchedSamplesInStep) {
  SampleQueue queue;
  for (int i = 0; i < 5; ++i) queue.put(NodeId(2), taken(TimePoint(10s + i * 100ms)));
  EXPECT_TRUE(play(queue, TimePoint(9s)).empty());
  for (int i = 0; i < 5; ++i) {
    const auto played = play(queue, TimePoint(10s + i * 100ms));
    ASSERT_EQ(played.size(), 1U);
    EXPECT_EQ(played[0], std::pair(2U, TimePoint(10s + i * 100ms)));
  }
  EXPECT_TRUE(play(queue, TimePoint(20s)).empty());
}

TEST(SampleQueue, ForgetAffectsOneNode) {
  SampleQueue queue;
  queue.put(NodeId(0), taken(TimePoint(1s)));
  queue.put(NodeId(1), taken(TimePoint(1s)));
  queue.forget(NodeId(0));
  queue.forget(NodeId(7));
  EXPECT_EQ(play(queue, TimePoint(1s)).size(), 1U);
}

TEST(SampleQueue, LimitsSamplesOfAFloodingNode) {
  SampleQueue queue;
  for (int i = 0; i < 10'000; ++i) queue.put(NodeId(0), taken(TimePoint(10s + i * 1ms)));
  EXPECT_LE(play(queue, TimePoint(1s)).size(), 32U);
  EXPECT_LE(play(queue, TimePoint(30s)).size(), 32U);
}

TEST(SampleQueue, DeliveredSamplesAreReused) {
  SampleQueue queue;
  auto sample = queue.spare();
  const NodeSample* const first = sample.get();
  queue.put(NodeId(0), std::move(sample));
  EXPECT_NE(queue.spare().get(), first) << "it still waits";
  ASSERT_EQ(play(queue, TimePoint(1s)).size(), 1U);
  EXPECT_EQ(queue.spare().get(), first);
}

TEST(SampleQueue, DelaysOnlyBatchedSamples) {
  for (const Duration apart : {together(1), together(kMany), together(kMany + 1)}) {
    EXPECT_EQ(SampleQueue::delay(0s, apart), 0s);
    EXPECT_GT(SampleQueue::delay(100ms, apart), apart);
    EXPECT_EQ(SampleQueue::delay(500ms, apart), 0s);
    EXPECT_EQ(SampleQueue::delay(1s, apart), 0s);
  }
  EXPECT_LT(together(kMany), together(kMany + 1));
}

}  // namespace
}  // namespace score::monitor
