// In these tests a task exits, is killed, forks or maps memory in any phase of a switch. Tasks and
// cgroups are real, and the clock is the test's. Between two phases the switcher always reads the
// clock or writes to a freezer, and the test acts at each of these points in turn.
#include "scored/node/switch/switch_follower.hpp"
#include "tests/support/node/test_cgroups.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/mman.h>

namespace score::node {
namespace {

using gang::SwitchPlan;

// Calls `act` at point `at`, counted from 1.
struct Script {
  int at = 0;
  std::function<void()> act;
  int point = 0;
  TimePoint now{1s};

  void pass() {
    if (++point == at) act();
  }
};

Script* g_script = nullptr;

TimePoint fake_now() {
  g_script->pass();
  return g_script->now += 1us;
}

void fake_sleep(TimePoint until) {
  g_script->pass();
  g_script->now = std::max(g_script->now, until);
}

struct WatchedTarget final : SwitchTarget {
  explicit WatchedTarget(std::unique_ptr<SwitchTarget> freezer) : real(std::move(freezer)) {}

  int stop() noexcept override {
    g_script->pass();
    is_stopped = true;
    const int error = real->stop();
    g_script->pass();
    return error;
  }

  int go() noexcept override {
    g_script->pass();
    const int error = real->go();
    is_stopped = false;
    g_script->pass();
    return error;
  }

  std::unique_ptr<SwitchTarget> real;
  bool is_stopped = false;
};

constexpr std::size_t kMapped = 1 << 20;

// Executes commands of single letters, and answers each with the same letter when it is done.
[[noreturn]] void run_task(int commands, int answers) {
  for (char command = 0; read(commands, &command, 1) == 1;) {
    if (command == 'x') _exit(0);
    if (command == 'f' && fork() == 0) {
      for (;;) pause();
    }
    if (command == 'm') {
      void* memory = mmap(nullptr, kMapped, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
      if (memory != MAP_FAILED) munmap(memory, kMapped);
    }
    if (write(answers, &command, 1) != 1) break;
  }
  _exit(1);
}

class Task {
 public:
  explicit Task(Cgroup& cgroup) : cgroup_(cgroup) {
    int commands[2];
    int answers[2];
    if (pipe(commands) != 0 || pipe(answers) != 0) return;
    commands_ = UniqueFd(commands[1]);
    answers_ = UniqueFd(answers[0]);
    const UniqueFd others[] = {UniqueFd(commands[0]), UniqueFd(answers[1])};
    pid_ = fork();
    if (pid_ == 0) {
      commands_.reset();  // the task ends with the test
      run_task(commands[0], answers[1]);
    }
    [[maybe_unused]] auto added = cgroup.add(pid_);
  }

  // Kills the task for 'k'; the task executes all other commands itself, as soon as it runs.
  void tell(char what) {
    told_ = what;
    if (what == 'k') {
      EXPECT_TRUE(cgroup_.kill());
    } else {
      EXPECT_EQ(write(commands_.get(), &what, 1), 1);
    }
  }

  bool has_done() {
    if (told_ == 'k' || told_ == 'x') {
      has_ended_ = has_ended_ || waitpid(pid_, nullptr, WNOHANG) == pid_;
      return has_ended_;
    }
    pollfd answer{.fd = answers_.get(), .events = POLLIN, .revents = 0};
    return poll(&answer, 1, 0) == 1;
  }

 private:
  Cgroup& cgroup_;
  UniqueFd commands_;
  UniqueFd answers_;
  pid_t pid_ = -1;
  char told_ = 0;
  bool has_ended_ = false;
};

std::vector<AttemptId> ids(std::initializer_list<std::uint64_t> numbers) {
  std::vector<AttemptId> made;
  for (const auto number : numbers) made.push_back(AttemptId{number});
  return made;
}

// Lets attempts 1 and 2 take turns of 100 ms and use one socket in turn.
struct Pair {
  Pair() {
    g_script = &script;
    socket = *sockets.open({UserId(0), 0, 0}, {.s_addr = htonl(INADDR_LOOPBACK)});
    std::vector<std::shared_ptr<ChannelUser>> users;
    for (const std::uint64_t key : {1, 2}) {
      auto target = std::make_unique<WatchedTarget>(cgroups.target(key - 1));
      targets.push_back(target.get());
      entries.push_back(std::make_shared<SwitchEntry>(AttemptId{key}, std::move(target)));
      users.push_back(std::make_shared<ChannelUser>(key, nullptr, ChannelUser::Sockets{socket}));
      users.back()->make_room();
    }
    SwitchPlan turns{Epoch{1},
                     TimePoint{1s},
                     200ms,
                     {{0ms, 100ms, ids({1})}, {100ms, 100ms, ids({2})}},
                     ids({1, 2})};
    program = std::make_unique<SwitchProgram>(std::vector{turns}, entries);
    program->networks = users;
    follower.take(program.get());
    switch_at(0);
  }

  void switch_at(int boundary) {
    script.now = TimePoint{1s} + boundary * 100ms;
    follower.step();
  }

  // Sends the task a command at point `at` of the next switch, counted from 1. If the task runs, it
  // has executed the command before the switch continues.
  void tell_at(int at, std::size_t who, char what) {
    script.point = 0;
    script.at = at;
    script.act = [this, who, what] {
      tasks[who].tell(what);
      if (targets[who]->is_stopped) return;
      EXPECT_TRUE(eventually([&] { return tasks[who].has_done(); }));
    };
  }

  // Returns true if everything in the cgroup has stopped, including processes that were added
  // meanwhile.
  bool rests(std::size_t who) {
    const auto events = cgroups[who].events();
    return events && (events->frozen || !events->populated);
  }

  bool is_free(std::size_t who) {
    const auto events = cgroups[who].events();
    return events && !events->frozen && !targets[who]->is_stopped;
  }

  Script script;
  CgroupPair cgroups;
  Task tasks[2]{Task(cgroups[0]), Task(cgroups[1])};
  ChannelSockets sockets;
  std::shared_ptr<ChannelSocket> socket;
  std::vector<WatchedTarget*> targets;
  std::vector<std::shared_ptr<SwitchEntry>> entries;
  SwitchTrace trace;
  SwitchCounters counters;
  std::atomic<Duration::rep> guard_ns{Duration(300us).count()};
  SwitchFollower follower{{&fake_now, &fake_sleep, guard_ns}, trace, counters};
  std::unique_ptr<SwitchProgram> program;
};

// Returns false if the switch has no such point.
bool act_at(int at, std::size_t who, char what) {
  Pair pair;
  pair.tell_at(at, who, what);
  pair.switch_at(1);
  EXPECT_TRUE(eventually([&] { return pair.rests(0) && pair.is_free(1); }));
  const bool has_acted = pair.script.point >= at;
  const auto has_done = [&] { return !has_acted || pair.tasks[who].has_done(); };
  EXPECT_TRUE(who == 0 || eventually(has_done)) << "it has its turn";
  pair.switch_at(2);
  EXPECT_TRUE(eventually([&] { return pair.rests(1) && pair.is_free(0); }));
  EXPECT_TRUE(eventually(has_done)) << "both had a turn";
  pair.switch_at(3);
  EXPECT_TRUE(eventually([&] { return pair.rests(0) && pair.is_free(1); }));
  pair.follower.release();
  EXPECT_TRUE(eventually([&] { return pair.is_free(0) && pair.is_free(1); }));
  EXPECT_EQ(pair.counters.failed, 0U);
  EXPECT_EQ(pair.counters.channels.handovers, 4U);
  return has_acted;
}

class SwitchPhases : public testing::TestWithParam<char> {};

TEST_P(SwitchPhases, TaskMayActInAnyPhase) {
  if (!CgroupPair().is_made()) GTEST_SKIP() << "no cgroup2 that may be written";
  for (const std::size_t who : {0, 1}) {
    int points = 0;
    while (act_at(points + 1, who, GetParam()) && !HasFailure()) ++points;
    EXPECT_FALSE(HasFailure()) << "at point " << points + 1 << " of the one that "
                               << (who == 0 ? "leaves" : "enters");
    EXPECT_GE(points, 12) << "freeze, guard, save, restore, wait and thaw, and around them";
  }
}

INSTANTIATE_TEST_SUITE_P(Actions, SwitchPhases, testing::Values('x', 'k', 'f', 'm'),
                         [](const auto& parameter) {
                           switch (parameter.param) {
                             case 'x':
                               return "Exit";
                             case 'k':
                               return "BeCancelled";
                             case 'f':
                               return "Fork";
                             default:
                               return "MapMemory";
                           }
                         });

}  // namespace
}  // namespace score::node
