// Tests the thread with processes that are really stopped.
#include "scored/node/switch/switcher.hpp"

#include "tests/support/node/test_cgroups.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace score::node {
namespace {

using gang::SwitchPlan;

std::vector<AttemptId> ids(std::vector<std::uint64_t> numbers) {
  std::vector<AttemptId> made;
  for (const auto number : numbers) made.push_back(AttemptId{number});
  return made;
}

// Makes a plan in which only `running` of attempts 1 and 2 runs, from now on.
SwitchPlan only(std::uint64_t running) {
  return {Epoch{running}, monotonic_now(), 1s, {{0s, 1s, ids({running})}}, ids({1, 2})};
}

SwitchPlan turns(Duration quantum) {
  return {Epoch{1},
          monotonic_now(),
          2 * quantum,
          {{Duration{0}, quantum, ids({1})}, {quantum, quantum, ids({2})}},
          ids({1, 2})};
}

// Starts a child in its own process group that does nothing.
class Sleeper {
 public:
  Sleeper() : pid_(fork()) {
    if (pid_ == 0) {
      setpgid(0, 0);
      for (;;) pause();
    }
    setpgid(pid_, pid_);
  }

  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] pid_t pid() const { return pid_; }

  [[nodiscard]] bool is_stopped() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    std::string line;
    std::getline(file, line);
    return line[line.rfind(')') + 2] == 'T';
  }

 private:
  pid_t pid_;
};

TEST(Switcher, StopsAndContinuesProcessGroups) {
  const Sleeper first;
  const Sleeper second;
  Switcher switcher;
  ASSERT_TRUE(switcher.start());
  switcher.add(AttemptId{1}, std::make_unique<SignalGroup>(first.pid()));
  switcher.add(AttemptId{2}, std::make_unique<SignalGroup>(second.pid()));
  switcher.follow(only(1));
  EXPECT_TRUE(eventually([&] { return second.is_stopped() && !first.is_stopped(); }));
  switcher.follow(only(2));
  EXPECT_TRUE(eventually([&] { return first.is_stopped() && !second.is_stopped(); }));
  switcher.stop();
  EXPECT_TRUE(eventually([&] { return !first.is_stopped() && !second.is_stopped(); }));
}

// A freezer that does not thaw when it is asked to for the first time.
class StuckOnce final : public SwitchTarget {
 public:
  explicit StuckOnce(std::atomic<bool>& is_frozen) : is_frozen_(is_frozen) {}

  int stop() noexcept override {
    is_frozen_ = true;
    return 0;
  }

  int go() noexcept override {
    if (!std::exchange(was_asked_, true)) return EIO;
    is_frozen_ = false;
    return 0;
  }

 private:
  std::atomic<bool>& is_frozen_;
  bool was_asked_ = false;
};

TEST(Switcher, ThawsAttemptThatCouldNotBeContinued) {
  std::atomic<bool> is_frozen = false;
  const Sleeper second;
  Switcher switcher;
  ASSERT_TRUE(switcher.start());
  switcher.add(AttemptId{1}, std::make_unique<StuckOnce>(is_frozen));
  switcher.add(AttemptId{2}, std::make_unique<SignalGroup>(second.pid()));
  switcher.follow(only(2));
  ASSERT_TRUE(eventually([&] { return is_frozen.load(); }));
  switcher.follow(only(1));
  ASSERT_TRUE(eventually([&] { return second.is_stopped(); }));
  const TimePoint now = monotonic_now();
  EXPECT_TRUE(is_frozen);
  EXPECT_TRUE(switcher.thaw_overdue(now).empty());
  const auto overdue = switcher.thaw_overdue(now + 3s);
  ASSERT_EQ(overdue.size(), 1U);
  EXPECT_EQ(overdue[0].attempt, AttemptId{1});
  EXPECT_TRUE(eventually([&] { return !is_frozen; }));
  switcher.stop();
}

TEST(Switcher, FreezesAndThawsCgroups) {
  CgroupPair cgroups;
  if (!cgroups.is_made()) GTEST_SKIP() << "no cgroup2 that may be written";
  const Sleeper first;
  const Sleeper second;
  ASSERT_TRUE(cgroups[0].add(first.pid()));
  ASSERT_TRUE(cgroups[1].add(second.pid()));
  const auto frozen = [&](std::size_t i) { return cgroups[i].events()->frozen; };
  Switcher switcher;
  ASSERT_TRUE(switcher.start());
  switcher.add(AttemptId{1}, cgroups.target(0));
  switcher.add(AttemptId{2}, cgroups.target(1));
  switcher.follow(only(1));
  EXPECT_TRUE(eventually([&] { return frozen(1) && !frozen(0); }));
  switcher.follow(only(2));
  EXPECT_TRUE(eventually([&] { return frozen(0) && !frozen(1); }));
  switcher.stop();
  EXPECT_TRUE(eventually([&] { return !frozen(0) && !frozen(1); }));
}

// The daemon must release the memory of jobs that have ended, even if it never gets a further plan.
TEST(Switcher, ReleasesRemovedNetworks) {
  for (int i = 0; i < 50; ++i) {
    const Sleeper process;
    Switcher switcher;
    ASSERT_TRUE(switcher.start());
    auto network = std::make_shared<ChannelUser>(1, nullptr, ChannelUser::Sockets{});
    const std::weak_ptr<ChannelUser> held = network;
    switcher.add(AttemptId{1}, std::make_unique<SignalGroup>(process.pid()));
    switcher.set_network(AttemptId{1}, std::move(network));
    switcher.follow(only(1));
    switcher.remove(AttemptId{1});
    EXPECT_TRUE(eventually([&] {
      switcher.collect();
      return held.expired();
    }));
  }
}

struct CountingTarget final : SwitchTarget {
  explicit CountingTarget(std::atomic<int>& stops) : stops_(stops) {}

  int stop() noexcept override {
    ++stops_;
    return 0;
  }

  int go() noexcept override { return 0; }

  std::atomic<int>& stops_;
};

TEST(Switcher, FollowsThePlanWithoutBeingAsked) {
  std::atomic<int> first{0};
  std::atomic<int> second{0};
  Switcher switcher;
  ASSERT_TRUE(switcher.start());
  switcher.add(AttemptId{1}, std::make_unique<CountingTarget>(first));
  switcher.add(AttemptId{2}, std::make_unique<CountingTarget>(second));
  switcher.follow(turns(2ms));
  EXPECT_TRUE(eventually([&] { return first > 20 && second > 20; }));
  switcher.stop();
  for (const auto& record : switcher.trace().read(TimePoint{}).records) {
    EXPECT_LE(record.woke, record.stopped);
    EXPECT_LE(record.stopped, record.done);
    EXPECT_GE(record.woke, Duration::zero());
  }
}

TEST(Switcher, NeverTouchesARemovedAttempt) {
  std::atomic<int> stops{0};
  std::atomic<int> others{0};
  Switcher switcher;
  ASSERT_TRUE(switcher.start());
  switcher.add(AttemptId{1}, std::make_unique<CountingTarget>(stops));
  switcher.add(AttemptId{2}, std::make_unique<CountingTarget>(others));
  switcher.follow(turns(1ms));
  const auto some_more = [&] {
    return eventually([&others, until = others + 3] { return others >= until; });
  };
  ASSERT_TRUE(some_more() && stops > 0);
  switcher.remove(AttemptId{1});
  ASSERT_TRUE(some_more()) << "the thread has seen it";
  const int before = stops;
  ASSERT_TRUE(some_more());
  EXPECT_EQ(stops, before);
}

TEST(Switcher, SleepsWhileThereIsNothingToSwitch) {
  std::atomic<int> stops{0};
  Switcher switcher;
  ASSERT_TRUE(switcher.start());
  switcher.add(AttemptId{1}, std::make_unique<CountingTarget>(stops));
  switcher.follow(only(1));
  rusage before{};
  rusage after{};
  usleep(20'000);
  getrusage(RUSAGE_SELF, &before);
  usleep(200'000);
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, 10);
}

bool may_run_in_real_time() {
  const sched_param lowest{.sched_priority = 1};
  const sched_param ordinary{};
  return sched_setscheduler(0, SCHED_FIFO, &lowest) == 0 &&
         sched_setscheduler(0, SCHED_OTHER, &ordinary) == 0;
}

TEST(Switcher, LendsALateMainLoopItsPriority) {
  if (!may_run_in_real_time()) GTEST_SKIP() << "no right to real-time priority";
  std::atomic<int> stops{0};
  Switcher switcher;
  ASSERT_TRUE(switcher.start());
  EXPECT_FALSE(switcher.note_turn(monotonic_now(), 1ms));
  switcher.add(AttemptId{1}, std::make_unique<CountingTarget>(stops));
  EXPECT_TRUE(eventually([] { return sched_getscheduler(0) == SCHED_FIFO; }));
  // The loan is marked only after it was given, so this must be repeated.
  EXPECT_TRUE(eventually([&] { return switcher.note_turn(monotonic_now(), 1h); }));
  EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
}

TEST(PriorityLoan, IsNotGivenAfterTheTurn) {
  PriorityLoan loan;
  const TimePoint now = monotonic_now();
  EXPECT_EQ(loan.due(), TimePoint::max());
  loan.renew(now, 10s);
  EXPECT_EQ(loan.due(), now + 10s);
  loan.lend(now + 9s);
  EXPECT_EQ(loan.due(), now + 10s);
  EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
}

TEST(Switcher, AcceptsManyPlansAtOnce) {
  std::atomic<int> stops{0};
  Switcher switcher({.wants_real_time = false});
  ASSERT_TRUE(switcher.start());
  for (std::uint64_t i = 0; i < 2'000; ++i) {
    switcher.add(AttemptId{1 + i % 3}, std::make_unique<CountingTarget>(stops));
    auto plan = turns(1ms);
    plan.start += Duration{1ms} * static_cast<long>(i % 5) - Duration{2ms};
    switcher.follow(plan);
    if (i % 7 == 0) switcher.remove(AttemptId{1 + i % 3});
  }
  switcher.stop();
  switcher.stop();
  EXPECT_EQ(switcher.priority(), SwitchPriority::None);
}

TEST(Switcher, ReportsItsPriority) {
  Switcher switcher;
  ASSERT_TRUE(switcher.start());
  if (geteuid() != 0) GTEST_SKIP() << "only root may always have a real-time priority";
  EXPECT_NE(switcher.priority(), SwitchPriority::None);
}

// ---- Trace --------------------------------------------------------------------------------------

SwitchRecord record_at(std::uint64_t number) {
  SwitchRecord record;
  record.due = TimePoint{Duration{static_cast<long>(number)}};
  record.woke = record.stopped = record.done = Duration{static_cast<long>(number)};
  record.epoch = Epoch{number};
  record.left[0] = record.entered[3] = AttemptId{number};
  return record;
}

TEST(SwitchTrace, GivesBackWhatWasPutInOrder) {
  SwitchTrace trace;
  for (std::uint64_t i = 1; i <= 10; ++i) trace.put(record_at(i));
  const auto extract = trace.read(TimePoint{Duration{4}});
  ASSERT_EQ(extract.records.size(), 6U);
  EXPECT_EQ(extract.records.front(), record_at(5));
  EXPECT_EQ(extract.records.back(), record_at(10));
  EXPECT_EQ(extract.lost, 0U);
}

TEST(SwitchTrace, CountsWhatWasOverwritten) {
  SwitchTrace trace;
  for (std::uint64_t i = 1; i <= SwitchTrace::kEntries + 7; ++i) trace.put(record_at(i));
  const auto extract = trace.read(TimePoint{});
  EXPECT_EQ(extract.lost, 7U);
  EXPECT_EQ(extract.records.size(), SwitchTrace::kEntries);
  EXPECT_EQ(extract.records.front(), record_at(8));
}

TEST(SwitchTrace, GivesEachNewRecordOnce) {
  SwitchTrace trace;
  std::uint64_t seen = 0;
  for (std::uint64_t i = 1; i <= 3; ++i) trace.put(record_at(i));
  EXPECT_EQ(trace.read_new(seen, 100).records.size(), 3U);
  EXPECT_TRUE(trace.read_new(seen, 100).records.empty());
  for (std::uint64_t i = 4; i <= 9; ++i) trace.put(record_at(i));
  const auto newest = trace.read_new(seen, 2);
  EXPECT_EQ(newest.lost, 4U);
  ASSERT_EQ(newest.records.size(), 2U);
  EXPECT_EQ(newest.records.back(), record_at(9));
}

TEST(SwitchTrace, NeverGivesHalfARecord) {
  SwitchTrace trace;
  constexpr std::uint64_t kCount = 200'000;
  std::thread writer([&] {
    for (std::uint64_t i = 1; i <= kCount; ++i) trace.put(record_at(i));
  });
  std::uint64_t last = 0;
  while (last < kCount) {
    for (const auto& record : trace.read(TimePoint{}).records) {
      last = record.epoch.value();
      if (record != record_at(last)) {
        ADD_FAILURE() << "torn at " << last;
        last = kCount;
        break;
      }
    }
  }
  writer.join();
}

}  // namespace
}  // namespace score::node
