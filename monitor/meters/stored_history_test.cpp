#include "monitor/meters/stored_history.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::monitor {
namespace {

using namespace std::chrono_literals;

LoadHistory three_hours() {
  LoadHistory history;
  for (int second = 0; second <= 3 * 3600; second += 10) {
    HistoryTotals totals;
    totals.at = WallTime(std::chrono::seconds(1'800'000'000 + second));
    totals.user = std::chrono::milliseconds(333) * second;
    totals.busy = std::chrono::nanoseconds(7) * second;
    totals.switches = static_cast<std::uint64_t>(second) * 20;
    totals.jobs = 3;
    totals.nodes = 2;
    totals.cores = 4;
    history.add(totals);
  }
  return history;
}

TEST(StoredHistory, PointsAreReadAsWritten) {
  const LoadHistory before = three_hours();
  LoadHistory after;
  read_points(after, write_points(before));
  for (const Duration step : {Duration(1min), Duration(10min)}) {
    ASSERT_GT(before.points(step)->size(), 10U);
    EXPECT_EQ(*after.points(step), *before.points(step));
  }
  EXPECT_TRUE(after.points(10s)->empty());
}

TEST(StoredHistory, NewPointsFollowStoredOnes) {
  LoadHistory history;
  read_points(history, write_points(three_hours()));
  const std::size_t stored = history.points(1min)->size();
  for (int second = 0; second <= 60; second += 10) {
    HistoryTotals totals;
    totals.at = WallTime(std::chrono::seconds(1'800'020'000 + second));
    history.add(totals);
  }
  EXPECT_GT(history.points(1min)->size(), stored);
}

TEST(StoredHistory, DamagedTextRestoresGoodLines) {
  const std::string good = "60 1800000000 60000000000 1 0 0 0 0 0 0 0 0 0\n";
  LoadHistory history;
  read_points(history, good + "60 1800000000 60000000000 2 0 0 0 0 0 0 0 0 0\n"  // not later
                           + "60 1800000061 1 0 0 0 0 0 0 0 0 0 0\n"             // no multiple
                           + "7 1800000070 1 0 0 0 0 0 0 0 0 0 0\n"              // no such step
                           + "60 9223372036854775807 1 0 0 0 0 0 0 0 0 0 0\n" +
                           "60 1800000120 1 -1 0 0 0 0 0 0 0 0 0\n" + "60 1800000180\n");
  ASSERT_EQ(history.points(1min)->size(), 1U);
  EXPECT_EQ(history.points(1min)->front().user, 1ns);

  std::mt19937_64 random(7);
  const std::string text = write_points(three_hours());
  for (int round = 0; round < 200; ++round) {
    std::string damaged = text.substr(0, random() % 3000);
    for (int i = 0; i < 20 && !damaged.empty(); ++i) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    read_points(history, damaged);
    EXPECT_LE(history.points(1min)->size(), 1440U);
  }
}

TEST(StoredHistory, FullHistoryFitsItsBound) {
  LoadHistory history;
  std::vector<HistoryPoint> points;
  for (int i = 0; i < 2000; ++i) {
    points.push_back({.begin = WallTime(std::chrono::minutes(10) * (3'000'000 + i)),
                      .observed = 600s,
                      .user = 600s * 65'536,
                      .system = 600s * 65'536,
                      .filled = 600s * 65'536,
                      .busy = 600s * 16'384,
                      .overhead = 60s * 16'384,
                      .switches = 10'000'000'000,
                      .late = 10'000'000'000,
                      .job_seconds = 600'000.5,
                      .node_seconds = 600 * 16'384,
                      .core_seconds = 600 * 65'536});
  }
  history.restore(1min, points);
  history.restore(10min, points);
  EXPECT_EQ(history.points(1min)->size(), 1440U);
  EXPECT_LT(write_points(history).size(), 500'000U);
}

}  // namespace
}  // namespace score::monitor
