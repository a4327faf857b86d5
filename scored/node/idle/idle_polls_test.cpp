// Tests how the watch judges tasks that report how much they poll. The numbers are those of PM on a
// busy machine: 3 % of the time goes into polls, and the task waits for a processor for each.
#include "pmlib/core/segment.hpp"
#include "scored/node/idle/idle_watch.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

namespace score::node {
namespace {

using namespace std::chrono_literals;

constexpr pid_t kLeader = 77;

struct Task {
  Duration used{0};
  Duration waited{0};
};

struct Usage final : CpuUsage {
  explicit Usage(const Task& t) : task(t) {}

  Duration used() noexcept override { return task.used; }

  Duration waited() noexcept override { return task.waited; }

  Duration used_by(pid_t process) noexcept override {
    return process == kLeader ? task.used : Duration{-1};
  }

  const Task& task;
};

// Has one task and every second slice.
struct Attempt {
  Attempt() {
    int error = 0;
    segment = pm::MappedSegment::create({}, {}, error);
    auto contexts = std::make_shared<ContextSet>();
    contexts->emplace_back(dup(segment->fd()));
    watch.set_contexts(std::move(contexts));
    watch.set_leader(kLeader);
  }

  pm::SegmentHeader& context() { return segment->segment().header(); }

  void pass_slices(int count, bool says_polled) {
    for (int i = 0; i < count; ++i) {
      watch.goes_on(now);
      now += pace.slice;
      task.used += 3ms;
      task.waited += 40ms;
      if (says_polled) context().polled_us += 3'000;
      watch.stops(now, pace);
      now += pace.slice;
    }
  }

  Task task;
  std::unique_ptr<pm::MappedSegment> segment;
  IdleWatch watch{std::make_unique<Usage>(task), {}};
  WatchPace pace{.slice = 100ms};
  TimePoint now{1s};
};

TEST(IdlePolls, AttemptThatOnlyPollsAndRestsIsIdle) {
  Attempt attempt;
  attempt.context().state = pm::ContextState::Rests;
  attempt.pass_slices(20, false);
  EXPECT_FALSE(attempt.watch.is_idle()) << "it works a little";
  attempt.pass_slices(20, true);
  EXPECT_TRUE(attempt.watch.is_idle());
  attempt.pass_slices(2, false);
  EXPECT_FALSE(attempt.watch.is_idle());
}

TEST(IdlePolls, BusyIfItLacksProcessorWithoutRest) {
  Attempt attempt;
  attempt.pass_slices(40, true);
  EXPECT_FALSE(attempt.watch.is_idle());
}

// The attempt fills, and polls while it does so. This must not hide what it does in its slices.
TEST(IdlePolls, PollingWhileItFillsDoesNotCount) {
  Attempt attempt;
  attempt.context().state = pm::ContextState::Rests;
  for (int i = 0; i < 20; ++i) {
    attempt.pass_slices(1, false);
    attempt.task.used += 5ms;
    attempt.context().polled_us += 5'000;
    attempt.watch.skip(5ms, false);
  }
  EXPECT_FALSE(attempt.watch.is_idle());
}

}  // namespace
}  // namespace score::node
