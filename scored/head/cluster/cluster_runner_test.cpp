#include "scored/head/cluster/cluster_runner.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace score::head {
namespace {

class StoppedClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(1h); }

  asio::awaitable<void> sleep_until(TimePoint) override { co_return; }
};

class ClusterRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ClusterRunner::Handlers handlers;
    handlers.send = [this](NodeId, HeadToNode&&) { note("send"); };
    handlers.node_changed = [this](NodeId) { note("node"); };
    handlers.job_changed = [this](JobId) { note("job"); };
    handlers.settled = [this] { done_.emplace_back("settled"); };
    runner_.connect(std::move(handlers));
  }

  // Carrying out the first action causes the actions in `nested_`.
  void note(const char* what) {
    done_.emplace_back(what);
    runner_.perform(std::exchange(nested_, {}));
  }

  StoppedClock clock_;
  ClusterRunner runner_{clock_, {}};
  gang::Actions nested_;
  std::vector<std::string> done_;
};

TEST_F(ClusterRunnerTest, NestedActionsAreQueuedLast) {
  nested_ = {gang::NodeChanged{NodeId(1)}};
  runner_.perform({gang::NodeChanged{NodeId(0)}, gang::SendToNode{NodeId(0), KillTasks{}}});
  EXPECT_EQ(done_, (std::vector<std::string>{"node", "send", "node", "settled"}));
}

TEST_F(ClusterRunnerTest, HandlesAChangedJobOnceAndLast) {
  runner_.perform({gang::JobChanged{JobId(1)}, gang::JobChanged{JobId(1)},
                   gang::NodeChanged{NodeId(0)}, gang::JobChanged{JobId(1)}});
  EXPECT_EQ(done_, (std::vector<std::string>{"node", "job", "settled"}));
}

TEST_F(ClusterRunnerTest, HandlesATouchedJobWithTheNextActions) {
  runner_.touch(JobId(1));
  EXPECT_TRUE(done_.empty());
  runner_.perform({});
  EXPECT_EQ(done_, (std::vector<std::string>{"job", "settled"}));
}

}  // namespace
}  // namespace score::head
