#include "scored/head/clients/turns.hpp"

#include "base/async/task_group.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

namespace score::head {
namespace {

class TurnsTest : public ::testing::Test {
 protected:
  asio::awaitable<void> ask(UserId user, char name) {
    const auto turn = co_await turns_->take(user);
    seen_ += turn ? name : '-';
  }

  // Simulates frames of nodes, of which one is ready at every turn of the loop.
  void work_for_nodes(int times) {
    seen_ += '.';
    if (times > 1) asio::post(io_, [this, times] { work_for_nodes(times - 1); });
  }

  asio::io_context io_{1};
  SteadyClock clock_;
  std::shared_ptr<Turns> turns_ = std::make_shared<Turns>(io_.get_executor(), clock_);
  TaskGroup tasks_{io_.get_executor(), [](std::string_view, const std::exception_ptr&) {}};
  std::string seen_;
};

TEST_F(TurnsTest, OtherWorkRunsBetweenTwoRequests) {
  for (int i = 0; i < 20; ++i) tasks_.spawn("ask", ask(UserId(1), 'a'));
  asio::post(io_, [this] { work_for_nodes(200); });
  io_.run();
  EXPECT_EQ(std::count(seen_.begin(), seen_.end(), 'a'), 20);
  EXPECT_EQ(seen_.find("aa"), std::string::npos) << seen_;
}

TEST_F(TurnsTest, OtherUserGetsATurnWithoutLoss) {
  for (int i = 0; i < 100; ++i) tasks_.spawn("ask", ask(UserId(1), 'a'));
  tasks_.spawn("ask", ask(UserId(2), 'b'));
  io_.run();
  EXPECT_EQ(seen_.size(), 101u);
  EXPECT_LT(seen_.find('b'), 5u) << seen_;
}

TEST_F(TurnsTest, WaitingTasksCanBeCancelled) {
  for (int i = 0; i < 10; ++i) tasks_.spawn("ask", ask(UserId(1), 'a'));
  score::run(io_, tasks_.stop());
  EXPECT_EQ(
      std::count(seen_.begin(), seen_.end(), 'a') + std::count(seen_.begin(), seen_.end(), '-'),
      static_cast<std::ptrdiff_t>(seen_.size()));
}

}  // namespace
}  // namespace score::head
