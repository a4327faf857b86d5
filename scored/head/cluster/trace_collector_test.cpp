#include "scored/head/cluster/trace_collector.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

class HandClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }

  asio::awaitable<void> sleep_until(TimePoint) override { co_return; }

  TimePoint now_{1h};
};

class TraceCollectorTest : public ::testing::Test {
 protected:
  Status gather(const std::string& asker = "1000") {
    return traces_.gather(asker, 1s, [this](wire::Trace) { ++done_; });
  }

  asio::io_context io_;
  HandClock clock_;
  NodeLinks links_;
  Alarm alarm_{io_, clock_};
  TraceCollector traces_{clock_, links_, alarm_};
  int done_ = 0;
};

TEST_F(TraceCollectorTest, IsDoneAtOnceWithoutNodes) {
  ASSERT_TRUE(gather());
  EXPECT_EQ(traces_.next_deadline(), clock_.now());
  traces_.tick(clock_.now());
  EXPECT_EQ(done_, 1);
  EXPECT_FALSE(traces_.next_deadline());
}

TEST_F(TraceCollectorTest, CollectsEightTracesAtATime) {
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(gather(std::to_string(i / 2)));
  const auto refused = gather("4");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().is(Errc::Busy));
  traces_.tick(clock_.now());
  EXPECT_EQ(done_, 8);
  EXPECT_TRUE(gather());
}

TEST_F(TraceCollectorTest, OneUserLeavesRequestsToOthers) {
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(gather());
  const auto refused = gather();
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().is(Errc::Busy));
  EXPECT_TRUE(gather("1001"));
  traces_.tick(clock_.now());
  EXPECT_TRUE(gather());
}

TEST_F(TraceCollectorTest, DropsRepliesThatNoOneAskedFor) {
  links_.add("n0");
  wire::NodeTraceReply reply;
  reply.set_tag(7);
  traces_.reply(NodeId(0), std::move(reply));
  EXPECT_EQ(done_, 0);
}

}  // namespace
}  // namespace score::head
