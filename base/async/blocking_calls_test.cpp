#include "base/async/blocking_calls.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>

namespace score {
namespace {

constexpr std::chrono::seconds kLong{120};  // reached only in case of a fault

// A call that has not returned does not delay the completion of other calls.
TEST(BlockingCalls, CallsCompleteWhileOneHangs) {
  asio::io_context io(1);
  BlockingCalls calls(io, 2);
  const auto release = std::make_shared<std::promise<void>>();
  const auto released = std::make_shared<std::shared_future<void>>(release->get_future());
  bool has_hung_one_answered = false;
  calls.run([released] { released->wait(); }, [&] { has_hung_one_answered = true; });
  int answered = 0;
  const auto here = std::this_thread::get_id();
  for (int i = 0; i < 100; ++i) {
    calls.run([] {},
              [&] {
                EXPECT_EQ(std::this_thread::get_id(), here);
                ++answered;
              });
  }
  const auto work = asio::make_work_guard(io);
  while (answered < 100) ASSERT_GT(io.run_one_for(kLong), 0u);
  EXPECT_FALSE(has_hung_one_answered);
  release->set_value();
  while (!has_hung_one_answered) ASSERT_GT(io.run_one_for(kLong), 0u);
}

TEST(BlockingCalls, MayBeDestroyedBeforeItsCallsReturn) {
  const auto release = std::make_shared<std::promise<void>>();
  const auto released = std::make_shared<std::shared_future<void>>(release->get_future());
  const auto begun = std::make_shared<std::promise<void>>();
  const auto ended = std::make_shared<std::promise<void>>();
  auto end = ended->get_future();
  {
    asio::io_context io(1);
    BlockingCalls calls(io, 1);
    calls.run(
        [begun, released, ended] {
          begun->set_value();
          released->wait();
          ended->set_value();
        },
        [] { FAIL() << "the loop has ended"; });
    calls.run([] { FAIL() << "forgotten"; }, [] {});
    ASSERT_EQ(begun->get_future().wait_for(kLong), std::future_status::ready);
  }
  release->set_value();
  EXPECT_EQ(end.wait_for(kLong), std::future_status::ready);
}

}  // namespace
}  // namespace score
