#include "monitor/meters/load_history.hpp"

#include <gtest/gtest.h>

namespace score::monitor {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kBegin{std::chrono::seconds(1'800'000'000)};  // a multiple of ten minutes

HistoryTotals totals(int second) {
  HistoryTotals made;
  made.at = kBegin + std::chrono::seconds(second);
  made.user = std::chrono::milliseconds(500 * second);
  made.switches = static_cast<std::uint64_t>(second) * 20;
  made.jobs = 3;
  made.nodes = 2;
  made.cores = 4;
  return made;
}

TEST(LoadHistory, AddsDifferencesToEachStep) {
  LoadHistory history;
  for (int second = 0; second <= 120; second += 10) history.add(totals(second));
  const auto& seconds = *history.points(10s);
  ASSERT_EQ(seconds.size(), 12U);
  EXPECT_EQ(seconds.front().begin, kBegin);
  EXPECT_EQ(seconds.front().user, 5s);
  EXPECT_EQ(seconds.front().switches, 200U);
  const auto& minutes = *history.points(1min);
  ASSERT_EQ(minutes.size(), 2U);
  EXPECT_EQ(minutes.back().begin, kBegin + Duration(1min));
  EXPECT_EQ(minutes.back().observed, 60s);
  EXPECT_DOUBLE_EQ(minutes.back().core_seconds, 240);
  EXPECT_DOUBLE_EQ(minutes.back().job_seconds, 180);
  EXPECT_EQ(history.points(10min)->size(), 1U);
  EXPECT_EQ(history.points(7s), nullptr);
}

TEST(LoadHistory, LeavesOutGapsAndClocksThatWentBack) {
  LoadHistory history;
  history.add(totals(0));
  history.add(totals(3600));
  EXPECT_TRUE(history.points(10s)->empty());
  history.add(totals(3610));
  history.add(totals(3000));
  EXPECT_EQ(history.points(10s)->size(), 1U);
  history.add(totals(3010));
  EXPECT_EQ(history.points(10s)->size(), 1U) << "an earlier step is not opened again";
}

TEST(LoadHistory, MemoryIsBounded) {
  LoadHistory history;
  for (int second = 0; second < 9 * 86'400; second += 10) history.add(totals(second));
  std::size_t bytes = 0;
  for (const auto& ring : history.rings()) {
    EXPECT_EQ(ring.points.size(), ring.most);
    bytes += ring.points.size() * sizeof(HistoryPoint);
  }
  EXPECT_LT(bytes, 512U * 1024);
}

}  // namespace
}  // namespace score::monitor
