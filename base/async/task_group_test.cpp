#include "base/async/task_group.hpp"

#include "base/async/clock.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

namespace score {
namespace {

asio::awaitable<void> sleep_until_cancelled(Clock& clock, int& ended) {
  struct AtEnd {
    int& count;

    ~AtEnd() { ++count; }
  };

  const AtEnd at_end{ended};
  co_await clock.sleep_for(24h);
}

asio::awaitable<void> fail_with(std::string what) {
  co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
  throw std::runtime_error(what);
}

asio::awaitable<int> answer() {
  co_return 42;
}

asio::awaitable<std::unique_ptr<int>> answer_moved() {
  co_return std::make_unique<int>(42);
}

class TaskGroupTest : public testing::Test {
 protected:
  asio::io_context io{1};
  SteadyClock clock;
  std::vector<std::string> failures;
  TaskGroup tasks{io.get_executor(), [this](std::string_view name, const std::exception_ptr& e) {
                    failures.push_back(fmt::format("{}: {}", name, describe_exception(e)));
                  }};
};

TEST_F(TaskGroupTest, StopCancelsAndWaitsForAll) {
  int ended = 0;
  for (int i = 0; i < 3; ++i) tasks.spawn("sleep", sleep_until_cancelled(clock, ended));
  EXPECT_EQ(tasks.size(), 3U);
  run(io, tasks.stop());
  EXPECT_EQ(ended, 3);
  EXPECT_TRUE(tasks.empty());
  EXPECT_TRUE(failures.empty());
}

TEST_F(TaskGroupTest, StopOfEmptyGroupReturnsEvenTwice) {
  run(io, tasks.stop());
  run(io, tasks.stop());
  EXPECT_TRUE(tasks.empty());
}

TEST_F(TaskGroupTest, StopWaitsEvenIfTheCallerIsCancelled) {
  int ended = 0;
  tasks.spawn("sleep", sleep_until_cancelled(clock, ended));
  TaskGroup outer(io.get_executor(), [](std::string_view, const std::exception_ptr&) {});
  bool returned = false;
  const auto stop_and_note = [](TaskGroup& group, bool& flag) -> asio::awaitable<void> {
    co_await group.stop();
    flag = true;
  };
  outer.spawn("stop", stop_and_note(tasks, returned));
  outer.cancel();
  io.restart();
  io.poll();
  EXPECT_TRUE(returned);
  EXPECT_EQ(ended, 1);
  EXPECT_TRUE(outer.empty());
}

TEST_F(TaskGroupTest, RefusesTasksAfterStop) {
  run(io, tasks.stop());
  int ended = 0;
  EXPECT_FALSE(tasks.spawn("late", sleep_until_cancelled(clock, ended)));
  EXPECT_TRUE(tasks.empty());
}

TEST_F(TaskGroupTest, ReportsExceptionsWithTaskName) {
  tasks.spawn("explode", fail_with("boom"));
  io.run();
  EXPECT_EQ(failures, (std::vector<std::string>{"explode: boom"}));
  EXPECT_TRUE(tasks.empty());
}

TEST_F(TaskGroupTest, ReportsCancellationOutsideOfStop) {
  int ended = 0;
  tasks.spawn("sleep", sleep_until_cancelled(clock, ended));
  tasks.cancel();
  io.restart();
  io.poll();
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(failures.size(), 1U);
}

TEST(TaskGroupDeathTest, AssertsThatNoTaskIsLeft) {
  asio::io_context io{1};
  SteadyClock clock;
  int ended = 0;
  const auto abandon = [&] {
    TaskGroup tasks(io.get_executor(), [](std::string_view, const std::exception_ptr&) {});
    tasks.spawn("leak", sleep_until_cancelled(clock, ended));
  };
  EXPECT_DEATH(abandon(), "tasks=1 first=leak");
}

TEST(Run, ReturnsResultOrThrows) {
  asio::io_context io{1};
  EXPECT_EQ(run(io, answer()), 42);
  EXPECT_EQ(*run(io, answer_moved()), 42);
  EXPECT_THROW(run(io, fail_with("boom")), std::runtime_error);
}

}  // namespace
}  // namespace score
