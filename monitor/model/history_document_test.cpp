#include "monitor/model/history_document.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace score::monitor {
namespace {

using namespace std::chrono_literals;

LoadHistory two_points() {
  LoadHistory history;
  for (int second = 0; second <= 20; second += 10) {
    HistoryTotals totals;
    totals.at = WallTime(std::chrono::seconds(1'800'000'000 + second));
    totals.user = std::chrono::seconds(second);
    totals.switches = static_cast<std::uint64_t>(second) * 10;
    totals.overhead = std::chrono::milliseconds(second);
    totals.busy = std::chrono::seconds(second);
    totals.jobs = 1;
    totals.nodes = 2;
    totals.cores = 4;
    history.add(totals);
  }
  return history;
}

TEST(HistoryDocument, RowsHaveTheColumns) {
  const auto made = write_history(two_points(), {});
  ASSERT_TRUE(made);
  EXPECT_EQ(
      *made,
      "{\"schema\":\"scored.history/1\",\"step_s\":10,\"columns\":[\"unix_s\",\"user\",\"system\","
      "\"filled\",\"busy\",\"overhead\",\"switches_per_s\",\"mean_switch_s\",\"late\",\"jobs\","
      "\"nodes\"],\"rows\":[[1800000000,0.25,0,0,0.5,0.001,5,0.0001,0,1,2],"
      "[1800000010,0.25,0,0,0.5,0.001,5,0.0001,0,1,2]]}\n");
}

TEST(HistoryDocument, CsvHasOneLinePerPoint) {
  const auto made = write_history(two_points(), {10s, true});
  ASSERT_TRUE(made);
  EXPECT_EQ(std::ranges::count(*made, '\n'), 3);
  EXPECT_TRUE(made->starts_with("unix_s,user,"));
  EXPECT_NE(made->find("\n1800000010,0.25,"), std::string::npos);
}

TEST(HistoryDocument, ValuesWithoutAnythingObservedAreMissing) {
  LoadHistory history;
  for (const int second : {0, 10}) {
    HistoryTotals totals;
    totals.at = WallTime(std::chrono::seconds(1'800'000'000 + second));
    history.add(totals);
  }
  EXPECT_NE(write_history(history, {})->find("[1800000000,null,null"), std::string::npos);
  EXPECT_NE(write_history(history, {10s, true})->find("\n1800000000,,,"), std::string::npos);
  EXPECT_TRUE(write_history(history, {7s, false}).error().is(Errc::NotFound));
}

}  // namespace
}  // namespace score::monitor
