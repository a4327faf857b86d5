// A rank that polls in vain sleeps for short times, and the event that it waits for ends them.
#include "tests/support/pmlib/test_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

namespace score::pm {
namespace {

using Over = TestJob::Over;

// A PollTime object sets the variable PM_POLL_US as long as it exists.
class PollTime {
 public:
  explicit PollTime(const char* poll_us) { setenv("PM_POLL_US", poll_us, 1); }

  ~PollTime() { unsetenv("PM_POLL_US"); }

  PollTime(const PollTime&) = delete;
  PollTime& operator=(const PollTime&) = delete;
};

// Polls like pm_receive(), and rests after polling in vain for long.
bool poll_once(Endpoint& e, std::string& text) {
  ReceivedMessage m;
  int error = e.receive(m);
  if (error == EAGAIN && e.rest_if_silent()) error = e.receive(m);
  if (error != 0) return false;
  e.end_silence();
  text.assign(reinterpret_cast<const char*>(m.bytes.data()), m.bytes.size());
  e.release(m);
  return true;
}

void poll_in_vain_until(Endpoint& e, std::uint64_t sleeps) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::string text;
  while (e.counters().sleeps < sleeps) {
    ASSERT_FALSE(poll_once(e, text));
    ASSERT_LT(std::chrono::steady_clock::now(), end) << "it does not rest";
  }
}

class Resting : public testing::TestWithParam<Over> {};

INSTANTIATE_TEST_SUITE_P(Devices, Resting, testing::Values(Over::Shmem, Over::Udp),
                         [](const auto& parameter) {
                           return parameter.param == Over::Shmem ? "Shmem" : "Udp";
                         });

TEST_P(Resting, RankPollingInVainRestsUntilMessageComes) {
  TestJob job(GetParam(), 2);
  poll_in_vain_until(job[0], 5);
  EXPECT_EQ(job[0].segment().header().state.load(), ContextState::Rests);
  job.send(1, 0, "hello");
  std::string text;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!poll_once(job[0], text)) ASSERT_LT(std::chrono::steady_clock::now(), end);
  EXPECT_EQ(text, "hello");
  EXPECT_EQ(job[0].segment().header().state.load(), ContextState::Works);
}

// The sleep has no timeout, so only the message can end it.
TEST_P(Resting, MessageEndsSleep) {
  TestJob job(GetParam(), 2);
  for (int i = 0; i < 20; ++i) {
    Endpoint::Sleep sleep;
    ASSERT_EQ(job[0].prepare_sleep(-1, ContextState::Waits, sleep), 0);
    EXPECT_EQ(job[0].segment().header().state.load(), ContextState::Waits);
    std::thread sleeper([&] { sleep_until_event(sleep.news, -1); });
    std::byte* buffer = nullptr;
    ASSERT_EQ(job[1].get_send_buffer(0, 1, &buffer), 0);
    ASSERT_EQ(job[1].send(), 0);
    sleeper.join();
    EXPECT_TRUE(job[0].end_sleep(sleep));
    EXPECT_EQ(job.receive(0).size(), 1U);
    job.run_until([&] { return job[0].is_quiet() && job[1].is_quiet(); });
    while (job[0].progress()) {
    }
  }
}

TEST_P(Resting, RankComputingBetweenPollsNeverRests) {
  TestJob job(GetParam(), 2);
  std::string text;
  for (int i = 0; i < 3'000; ++i) {
    for (const std::uint64_t end = thread_used_us() + 20; thread_used_us() < end;) {
    }
    ASSERT_FALSE(poll_once(job[0], text));
  }
  EXPECT_EQ(job[0].counters().sleeps, 0U);
}

// The work takes less time than PollEpisode counts as one turn of polling.
TEST_P(Resting, RankWorkingBrieflyBetweenPollsNeverRests) {
  TestJob job(GetParam(), 2);
  std::string text;
  for (int i = 0; i < 20'000; ++i) {
    for (const std::uint64_t end = now_ns() + 1'500; now_ns() < end;) {
    }
    ASSERT_FALSE(poll_once(job[0], text));
  }
  EXPECT_EQ(job[0].counters().sleeps, 0U);
}

// Under other load an interrupted poll makes the estimate for earlier polls too large, so one of
// several tries must pass.
TEST_P(Resting, ProcessorTimeOfPollsIsPublished) {
  TestJob job(GetParam(), 2);
  poll_in_vain_until(job[0], job[0].counters().sleeps + 1);
  const auto polled = [&job] { return job[0].segment().header().polled_us.load(); };
  std::uint64_t least_excess = UINT64_MAX;
  for (int i = 0; i < 50 && least_excess > 0; ++i) {
    const std::uint64_t used = thread_used_us(), before = polled();
    poll_in_vain_until(job[0], job[0].counters().sleeps + 20);
    const std::uint64_t more = polled() - before;
    EXPECT_GT(more, 0U);
    const std::uint64_t most =
        thread_used_us() - used + PollEpisode::kRefreshUs + PollEpisode::kSlackUs;
    least_excess = std::min(least_excess, more - std::min(more, most));
  }
  EXPECT_EQ(least_excess, 0U);
}

TEST_P(Resting, NegativePollTimeMeansPollingForever) {
  const PollTime poll_time("-1");
  TestJob job(GetParam(), 2);
  std::string text;
  for (int i = 0; i < 100'000; ++i) ASSERT_FALSE(poll_once(job[0], text));
  job[0].declare_idle(true);
  for (int i = 0; i < 100'000; ++i) ASSERT_FALSE(poll_once(job[0], text));
  EXPECT_EQ(job[0].counters().sleeps, 0U);
}

TEST_P(Resting, DeclaredIdleRankRestsWithAnyPollTime) {
  const PollTime poll_time("1000000000");
  TestJob job(GetParam(), 2);
  job[0].declare_idle(true);
  EXPECT_EQ(job[0].segment().header().state.load(), ContextState::Rests);
  poll_in_vain_until(job[0], 5);
  std::string none;
  for (const std::uint64_t sleeps = job[0].counters().sleeps;
       job[0].counters().sleeps < sleeps + 5;) {
    job[0].declare_idle(true);  // a loop may repeat the call in each turn
    ASSERT_FALSE(poll_once(job[0], none));
  }
  job.send(1, 0, "x");
  std::string text;
  while (!poll_once(job[0], text)) {
  }
  EXPECT_EQ(job[0].segment().header().state.load(), ContextState::Rests) << "until pm_busy()";
  job[0].declare_idle(false);
  EXPECT_EQ(job[0].segment().header().state.load(), ContextState::Works);
}

}  // namespace
}  // namespace score::pm
