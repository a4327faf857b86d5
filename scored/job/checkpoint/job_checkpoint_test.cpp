#include "scored/job/checkpoint/job_checkpoint.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

namespace score::shepherd {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration kLook = 2ms;
constexpr base::Duration kGiveUp = 60s;

// A task that only waits, in a job whose images cannot be written.
class JobCheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = EventLoop::create();
    ASSERT_TRUE(made);
    loop_.emplace(*std::move(made));
    criu_.emplace(*loop_, base::UniqueFd());
    plan_.prepare.add_tasks_on_node(1);
    plan_.spec.set_checkpoint("/proc/none");
    task_ = fork();
    ASSERT_GE(task_, 0);
    for (; task_ == 0;) pause();
    job_.emplace(JobCheckpoint::Parts{
        *loop_, plan_, *criu_, [this] { return task_; },
        [this] { return std::vector<pid_t>{task_}; }, [this] { return why_not_; },
        [] { return true; }, [](NodeImage&) {},
        [this](const wire::ShepherdCheckpointed& answer) { reason_ = answer.reason(); }, 10ms});
  }

  void TearDown() override {
    kill(task_, SIGKILL);
    waitpid(task_, nullptr, 0);
  }

  void order(wire::CheckpointStep step) {
    wire::ShepherdCheckpoint order;
    order.set_tag(++tag_);
    order.set_step(step);
    order.set_set("set");
    job_->order(order);
  }

  void hold() {
    order(wire::HOLD);
    int status = 0;
    ASSERT_EQ(waitpid(task_, &status, WUNTRACED), task_);
    ASSERT_TRUE(WIFSTOPPED(status));
  }

  void look() {
    int status = 0;
    has_continued_ = waitpid(task_, &status, WCONTINUED | WNOHANG) == task_ && WIFCONTINUED(status);
    if (has_continued_) return loop_->stop();
    loop_->after(kLook, [this] { look(); });
  }

  [[nodiscard]] bool continues() {
    look();
    loop_->after(kGiveUp, [this] { loop_->stop(); });
    loop_->run();
    return has_continued_;
  }

  std::optional<EventLoop> loop_;
  std::optional<CriuClient> criu_;
  Plan plan_;
  pid_t task_ = 0;
  std::string why_not_;
  std::optional<JobCheckpoint> job_;
  std::uint64_t tag_ = 0;
  std::string reason_;
  bool has_continued_ = false;
};

TEST_F(JobCheckpointTest, HeldTasksContinueWithoutOrders) {
  hold();
  EXPECT_EQ(reason_, "");
  EXPECT_TRUE(continues());
}

TEST_F(JobCheckpointTest, TasksContinueAfterRefusedSave) {
  hold();
  why_not_ = "some of its tasks have ended";
  order(wire::SAVE);
  EXPECT_EQ(reason_, why_not_);
  EXPECT_TRUE(continues());
}

TEST_F(JobCheckpointTest, TasksContinueAfterCompletionWithoutOrders) {
  hold();
  order(wire::COMPLETE);
  EXPECT_NE(reason_, "");
  EXPECT_TRUE(continues());
}

}  // namespace
}  // namespace score::shepherd
