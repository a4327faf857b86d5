#include "gang/node/clock_filter.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::gang {
namespace {

using namespace std::chrono_literals;

// This node's clock is cluster time minus an offset and runs fast by drift.
struct Node {
  Duration offset{500s};
  double drift = 0;

  [[nodiscard]] TimePoint local(TimePoint cluster) const {
    const Duration since = cluster.time_since_epoch();
    return TimePoint{
        since - offset +
        Duration{static_cast<std::int64_t>(static_cast<double>(since.count()) * drift)}};
  }

  [[nodiscard]] ClockSample exchange(TimePoint t, Duration there, Duration back) const {
    return {local(t), t + there, t + there + 10us, local(t + there + 10us + back)};
  }

  [[nodiscard]] Duration error(const ClockFilter& filter, TimePoint t) const {
    return std::chrono::abs(filter.to_cluster(local(t)) - t);
  }
};

TEST(ClockFilter, IsIdentityBeforeFirstSample) {
  const ClockFilter filter;
  EXPECT_FALSE(filter.synchronised());
  EXPECT_EQ(filter.to_cluster(TimePoint{7s}), TimePoint{7s});
  EXPECT_EQ(filter.to_node(TimePoint{7s}), TimePoint{7s});
}

TEST(ClockFilter, SymmetricDelaysGiveTheOffsetExactly) {
  const Node node;
  ClockFilter filter;
  ASSERT_TRUE(filter.add(node.exchange(TimePoint{1000s}, 100us, 100us)));
  EXPECT_TRUE(filter.synchronised());
  EXPECT_EQ(filter.offset(), 500s);
  EXPECT_EQ(filter.to_node(filter.to_cluster(TimePoint{600s})), TimePoint{600s});
}

TEST(ClockFilter, AddsTheErrorOfTheNodeThatAnswers) {
  const Node node;
  ClockFilter filter;
  ClockSample sample = node.exchange(TimePoint{1000s}, 100us, 100us);
  sample.head_error = 30us;
  ASSERT_TRUE(filter.add(sample));
  EXPECT_EQ(filter.error_bound(sample.node_received), 130us);
  sample.head_error = -1us;
  EXPECT_FALSE(filter.add(sample));
}

struct Weather {
  const char* name;
  double drift;
  Duration there, back, jitter;
  int outlier_one_in;
  Duration worst;  // after ten minutes with an exchange per second
};

TEST(ClockFilter, ErrorStaysBelowAMillisecond) {
  const Weather cases[] = {
      {"quiet", 0, 50us, 50us, 20us, 1000, 30us},
      {"drift", 40e-6, 50us, 50us, 20us, 1000, 60us},
      {"drift the other way", -80e-6, 50us, 50us, 20us, 1000, 60us},
      {"asymmetric", 20e-6, 400us, 50us, 50us, 1000, 250us},
      {"outliers", 50e-6, 50us, 50us, 100us, 2, 100us},
      {"loaded", -50e-6, 200us, 200us, 800us, 4, 450us},
  };
  for (const Weather& w : cases) {
    std::mt19937_64 chance(1);
    const auto delay = [&](Duration least) {
      Duration d = least + Duration{static_cast<std::int64_t>(
                               chance() % static_cast<std::uint64_t>(w.jitter.count()))};
      if (chance() % static_cast<std::uint64_t>(w.outlier_one_in) == 0) d += 30ms;
      return d;
    };
    Node node;
    node.drift = w.drift;
    ClockFilter filter;
    Duration worst{0};
    for (int second = 0; second < 600; ++second) {
      const TimePoint t{1000s + second * 1s};
      filter.add(node.exchange(t, delay(w.there), delay(w.back)));
      const TimePoint later = t + 900ms;
      EXPECT_LE(node.error(filter, later), filter.error_bound(node.local(later)) + 1us) << w.name;
      if (second > 60) worst = std::max(worst, node.error(filter, later));
    }
    EXPECT_LE(worst, w.worst) << w.name;
  }
}

TEST(ClockFilter, FollowsSteppedClockAfterTwoSamples) {
  Node node;
  ClockFilter filter;
  for (int i = 0; i < 20; ++i) filter.add(node.exchange(TimePoint{1000s + i * 1s}, 50us, 50us));
  Node liar;
  liar.offset = 400s;
  EXPECT_FALSE(filter.add(liar.exchange(TimePoint{1020s}, 50us, 50us)));
  EXPECT_TRUE(filter.add(node.exchange(TimePoint{1021s}, 50us, 50us)));
  EXPECT_LT(node.error(filter, TimePoint{1021s}), 10us);
  node.offset = 501s;
  EXPECT_FALSE(filter.add(node.exchange(TimePoint{1022s}, 50us, 50us)));
  EXPECT_TRUE(filter.add(node.exchange(TimePoint{1023s}, 50us, 50us)));
  EXPECT_LT(node.error(filter, TimePoint{1023s}), 10us);
}

TEST(ClockFilter, NewConnectionRestartsTheEstimate) {
  Node node;
  ClockFilter filter;
  filter.add(node.exchange(TimePoint{1000s}, 50us, 50us));
  filter.restart();
  EXPECT_FALSE(filter.synchronised());
  node.offset = -3s;
  EXPECT_TRUE(filter.add(node.exchange(TimePoint{1001s}, 9ms, 9ms)));
  EXPECT_TRUE(filter.synchronised());
  EXPECT_LT(node.error(filter, TimePoint{1001s}), 10us);
}

TEST(ClockFilter, SameClockIsNotEstimated) {
  Node node;
  node.offset = 0s;
  ClockFilter filter;
  filter.set_same(true);
  EXPECT_FALSE(filter.synchronised() || filter.is_same()) << "no sample has confirmed it";
  EXPECT_TRUE(filter.add(node.exchange(TimePoint{1000s}, 10us, 400us)));
  EXPECT_TRUE(filter.synchronised() && filter.is_same());
  EXPECT_EQ(filter.to_cluster(TimePoint{1100s}), TimePoint{1100s});
  EXPECT_EQ(filter.to_node(TimePoint{1100s}), TimePoint{1100s});
  EXPECT_EQ(filter.offset(), 0ns);
  EXPECT_EQ(filter.error_bound(TimePoint{1100s}), 0ns);
  filter.restart();
  EXPECT_TRUE(filter.add(node.exchange(TimePoint{1200s}, 10us, 400us)));
  EXPECT_GT(filter.error_bound(TimePoint{1200s}), 0ns) << "the next connection did not say so";
}

// The node and the head are clones of one virtual machine, so they report the same clock.
TEST(ClockFilter, ContradictingSampleRefutesSameClock) {
  Node node;
  node.offset = 1ms;
  ClockFilter filter;
  filter.set_same(true);
  EXPECT_TRUE(filter.add(node.exchange(TimePoint{1000s}, 50us, 50us)));
  EXPECT_LT(node.error(filter, TimePoint{1000s}), 10us);
  EXPECT_GT(filter.error_bound(TimePoint{1000s}), 0ns);
  EXPECT_FALSE(filter.is_same());
}

TEST(ClockFilter, RefusesImpossibleSamples) {
  const ClockSample cases[] = {
      {TimePoint{2s}, TimePoint{5s}, TimePoint{5s}, TimePoint{1s}},
      {TimePoint{1s}, TimePoint{5s}, TimePoint{4s}, TimePoint{2s}},
      {TimePoint{1s}, TimePoint{5s}, TimePoint{8s}, TimePoint{2s}},
      {TimePoint{1s}, TimePoint{5s}, TimePoint{5s}, TimePoint{12s}},
      {TimePoint::min(), TimePoint{5s}, TimePoint{5s}, TimePoint::max()},
      {TimePoint{1s}, TimePoint::min(), TimePoint::max(), TimePoint{2s}},
  };
  ClockFilter filter;
  for (const ClockSample& s : cases) EXPECT_FALSE(filter.add(s));
  EXPECT_FALSE(filter.synchronised());
}

}  // namespace
}  // namespace score::gang
