#include "base/async/timeout.hpp"

#include "base/async/backoff.hpp"
#include "base/async/task_group.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace score {
namespace {

asio::awaitable<Result<int>> work_for(Clock& clock, Duration duration) {
  co_await clock.sleep_for(duration);
  co_return 7;
}

asio::awaitable<Status> throw_now(Clock& clock) {
  co_await clock.sleep_for(1ms);
  throw std::runtime_error("boom");
}

// Seen holds the outcome and its time for the test to check.
struct Seen {
  std::optional<Result<int>> result;
  Duration after{};
};

asio::awaitable<void> watch(Clock& clock, Duration work, Duration timeout, Seen& seen) {
  const TimePoint start = clock.now();
  auto result = co_await with_timeout(clock, timeout, work_for(clock, work));
  seen.result.emplace(std::move(result));
  seen.after = clock.now() - start;
}

class TimeoutTest : public testing::Test {
 protected:
  asio::io_context io{1};
  SimClock clock{io};
  std::vector<std::string> failures;
  TaskGroup tasks{io.get_executor(), [this](std::string_view, const std::exception_ptr& e) {
                    failures.push_back(describe_exception(e));
                  }};
  Seen seen;
};

TEST_F(TimeoutTest, QuickWorkReturnsItsResult) {
  tasks.spawn("watch", watch(clock, 1s, 2s, seen));
  clock.run_for(1h);
  EXPECT_EQ(seen.result->value(), 7);
  EXPECT_EQ(seen.after, 1s);
  EXPECT_EQ(clock.sleeper_count(), 0U);
}

TEST_F(TimeoutTest, SlowWorkEndsAtTheDeadline) {
  tasks.spawn("watch", watch(clock, 3s, 2s, seen));
  clock.run_for(1h);
  EXPECT_TRUE(seen.result->error().is(Errc::Timeout));
  EXPECT_EQ(seen.after, 2s);
  EXPECT_EQ(clock.sleeper_count(), 0U);
}

TEST_F(TimeoutTest, ExceptionsPassThroughWithoutWaiting) {
  const auto guarded = [](SimClock& sim) -> asio::awaitable<void> {
    [[maybe_unused]] const auto status = co_await with_timeout(sim, 1h, throw_now(sim));
  };
  tasks.spawn("guarded", guarded(clock));
  clock.run_for(1ms);
  EXPECT_EQ(failures, (std::vector<std::string>{"boom"}));
  EXPECT_EQ(clock.sleeper_count(), 0U);
}

TEST_F(TimeoutTest, CancellationEndsWorkAndTimer) {
  tasks.spawn("watch", watch(clock, 3s, 2s, seen));
  clock.run_for(1s);
  tasks.cancel();
  clock.run_for(0s);
  EXPECT_FALSE(seen.result);
  EXPECT_EQ(failures.size(), 1U);
  EXPECT_EQ(clock.sleeper_count(), 0U);
}

TEST(Backoff, DoublesWithJitterUpToTheCap) {
  Backoff backoff(100ms, 1s, 1);
  Duration ceiling = 100ms;
  for (int i = 0; i < 20; ++i) {
    const Duration wait = backoff.next();
    EXPECT_GE(wait, ceiling / 2);
    EXPECT_LE(wait, ceiling);
    ceiling = std::min<Duration>(1s, ceiling * 2);
  }
  backoff.reset();
  EXPECT_LE(backoff.next(), 100ms);
}

TEST(Backoff, DiffersBetweenSeeds) {
  Backoff one(1s, 1s, 1);
  Backoff two(1s, 1s, 2);
  EXPECT_NE(one.next(), two.next());
}

TEST(Backoff, DoesNotOverflow) {
  Backoff backoff(1ns, Duration::max(), 1);
  for (int i = 0; i < 200; ++i) EXPECT_GE(backoff.next(), 0ns);
}

}  // namespace
}  // namespace score
