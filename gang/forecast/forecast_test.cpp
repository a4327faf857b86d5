#include "gang/forecast/forecast.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kNow{1h};
constexpr base::Bytes kMemory{100};

Forecast::Wanted job(std::uint32_t nodes, std::optional<Duration> length = std::nullopt) {
  Forecast::Wanted wanted;
  wanted.shape.nodes = nodes;
  wanted.shape.tasks = nodes;
  wanted.occupant.bound = length;
  return wanted;
}

struct ForecastTest : testing::Test {
  Forecast of(std::size_t rows, std::size_t nodes) {
    return {kNow, rows, std::vector<Forecast::Node>(nodes, {1, kMemory}), calendar};
  }

  Calendar calendar;
};

TEST_F(ForecastTest, JobStartsNowIfThereIsRoom) {
  Forecast f = of(1, 2);
  EXPECT_EQ(f.put(job(2)), kNow);
  EXPECT_EQ(f.put(job(1)), std::nullopt) << "the first has no time limit";
}

TEST_F(ForecastTest, JobStartsWhenItsLastNodeIsFree) {
  Forecast f = of(1, 2);
  f.occupied({{0, 1, {}}}, 0, kNow + 10min);
  f.occupied({{1, 1, {}}}, 0, kNow + 20min);
  EXPECT_EQ(f.put(job(2, 5min)), kNow + 20min);
  EXPECT_EQ(f.put(job(1, 10min)), kNow + 10min) << "it has ended before the other begins";
  EXPECT_EQ(f.put(job(1, 10min)), kNow + 25min);
}

TEST_F(ForecastTest, OtherRowsCountAsRoom) {
  Forecast f = of(2, 1);
  f.occupied({{0, 1, {}}}, 0, std::nullopt);
  auto wanted = job(1, 5min);
  EXPECT_EQ(f.put(wanted), std::nullopt) << "it may use one row";
  wanted.rows = 2;
  EXPECT_EQ(f.put(wanted), kNow);
  EXPECT_EQ(f.put(wanted), kNow + 5min);
}

TEST_F(ForecastTest, MemoryIsSharedByAllRows) {
  Forecast f = of(2, 1);
  f.occupied({{0, 1, base::Bytes{60}}}, 0, kNow + 1min);
  auto wanted = job(1, 5min);
  wanted.rows = 2;
  wanted.shape.memory = base::Bytes{50};
  EXPECT_EQ(f.put(wanted), kNow + 1min);
}

TEST_F(ForecastTest, ExclusiveJobWaitsForAllRows) {
  Forecast f = of(2, 1);
  f.occupied({{0, 1, {}}}, 1, kNow + 1min);
  auto alone = job(1, 5min);
  alone.is_exclusive = true;
  EXPECT_EQ(f.put(alone), kNow + 1min);
  auto other = job(1, 2min);
  other.rows = 2;
  EXPECT_EQ(f.put(other), kNow + 6min) << "one of two minutes does not end before the first begins";
  other.occupant.bound = 1min;
  EXPECT_EQ(f.put(other), kNow);
}

TEST_F(ForecastTest, ReservationsAreKeptFree) {
  NodeTable nodes{ClusterConfig{}};
  ASSERT_TRUE(nodes.add(NodeId{0}, "node0"));
  calendar.set({{"m", {NodeId{0}}, kNow + 10min, kNow + 20min, {}, {}}}, nodes);
  calendar.advance(kNow);
  Forecast f = of(8, 1);
  auto wanted = job(1, 10min);
  EXPECT_EQ(f.put(wanted), kNow);
  wanted.occupant.bound = 11min;
  EXPECT_EQ(f.put(wanted), kNow + 20min);
  wanted.occupant.bound = std::nullopt;
  wanted.rows = 8;
  EXPECT_EQ(f.put(wanted), kNow + 20min);
}

TEST_F(ForecastTest, UnusableOrForbiddenNodesDoNotCount) {
  Forecast f{kNow, 1, {{0, kMemory}, {1, kMemory}, {1, kMemory}}, calendar};
  auto wanted = job(2, 5min);
  wanted.allowed = {true, true, false};
  EXPECT_EQ(f.put(wanted), std::nullopt);
  wanted.allowed = {true, true, true};
  EXPECT_EQ(f.put(wanted), kNow);
}

TEST_F(ForecastTest, GivesUpIfSearchTakesTooLong) {
  Forecast f = of(1, 1000);
  std::optional<TimePoint> last = kNow;
  for (int i = 0; i < 5'000 && last; ++i) last = f.put(job(1000, 1min));
  EXPECT_FALSE(last);
}

}  // namespace
}  // namespace score::gang
