// The real guard; this process as the node daemon.
#include "base/os/cgroup.hpp"
#include "base/os/fd.hpp"
#include "base/os/spawn.hpp"
#include "scored/thaw/guard.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::thaw {
namespace {

bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 2'000; ++i) {
    if (holds()) return true;
    usleep(5'000);
  }
  return false;
}

char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto end = line.rfind(')');
  return end == std::string::npos ? '-' : line[end + 2];
}

class GuardTest : public ::testing::Test {
 protected:
  void TearDown() override {
    daemon_.reset();
    if (guard_.pid > 0) {
      EXPECT_TRUE(eventually([this] { return reap(guard_.pidfd.get(), false)->has_value(); }));
    }
    if (stopped_ > 0) {
      kill(stopped_, SIGKILL);
      waitpid(stopped_, nullptr, 0);
    }
    if (!root_.empty()) EXPECT_TRUE(eventually([this] { return bool(remove_cgroup_tree(root_)); }));
  }

  void start(const std::string& cgroup_root) {
    int pair[2] = {-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    daemon_ = UniqueFd(pair[0]);
    const UniqueFd theirs(pair[1]);
    lease_ = UniqueFd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    SpawnSpec spec;
    spec.path = THAW_PROGRAM;
    spec.argv = {"scored-thaw", "--guard", cgroup_root};
    spec.fds = {{2, 2}, {theirs.get(), kDaemonFd}, {lease_.get(), kLeaseFd}};
    auto started = spawn(spec);
    ASSERT_TRUE(started);
    guard_ = *std::move(started);
  }

  void renew(time_t seconds) const {
    const itimerspec at{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_nsec = 1}};
    ASSERT_EQ(timerfd_settime(lease_.get(), 0, &at, nullptr), 0);
  }

  // A group of one process that is stopped, and of which the guard knows.
  pid_t stop_group() {
    if (stopped_ == 0) stopped_ = fork();
    if (stopped_ == 0) {
      setpgid(0, 0);
      for (;;) pause();
    }
    setpgid(stopped_, stopped_);
    const Group told{.group = stopped_, .is_watched = 1};
    EXPECT_EQ(send(daemon_.get(), &told, sizeof told, 0), static_cast<ssize_t>(sizeof told));
    kill(-stopped_, SIGSTOP);
    EXPECT_TRUE(eventually([this] { return state_of(stopped_) == 'T'; }));
    return stopped_;
  }

  std::optional<Cgroup> freeze_job() {
    const auto own = own_cgroup();
    if (!own) return std::nullopt;
    root_ = *own + "/scored-thaw-" + std::to_string(getpid());
    if (!Cgroup::create(root_) || !Cgroup::create(root_ + "/job_7")) {
      root_.clear();
      return std::nullopt;
    }
    auto tasks = Cgroup::create(root_ + "/job_7/tasks");
    EXPECT_TRUE(tasks->freeze(true));
    EXPECT_TRUE(eventually([&] { return tasks->events()->frozen; }));
    return std::move(*tasks);
  }

  UniqueFd daemon_;
  UniqueFd lease_;
  SpawnedProcess guard_;
  std::string root_;
  pid_t stopped_ = 0;
};

TEST_F(GuardTest, ThawsCgroupsWhenTheDaemonIsGone) {
  auto tasks = freeze_job();
  if (!tasks) GTEST_SKIP() << "no cgroup2 that may be written";
  start(root_);
  renew(60);
  daemon_.reset();
  EXPECT_TRUE(eventually([&] { return !tasks->events()->frozen; }));
}

TEST_F(GuardTest, ThawsCgroupsWhenTheLeaseEnds) {
  auto tasks = freeze_job();
  if (!tasks) GTEST_SKIP() << "no cgroup2 that may be written";
  start(root_);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(tasks->freeze(true));
    renew(0);
    EXPECT_TRUE(eventually([&] { return !tasks->events()->frozen; }));
  }
}

TEST_F(GuardTest, ContinuesGroupsWhenTheLeaseEndsAndWhenTheDaemonIsGone) {
  start("none");
  const pid_t group = stop_group();
  renew(0);
  EXPECT_TRUE(eventually([&] { return state_of(group) == 'S'; }));
  stop_group();
  daemon_.reset();
  EXPECT_TRUE(eventually([&] { return state_of(group) == 'S'; }));
}

TEST_F(GuardTest, LeavesForgottenGroupsAlone) {
  start("none");
  const pid_t group = stop_group();
  const Group told{.group = group, .is_watched = 0};
  ASSERT_EQ(send(daemon_.get(), &told, sizeof told, 0), static_cast<ssize_t>(sizeof told));
  daemon_.reset();
  EXPECT_TRUE(eventually([this] { return reap(guard_.pidfd.get(), false)->has_value(); }));
  guard_ = {};
  EXPECT_EQ(state_of(group), 'T');
}

TEST_F(GuardTest, OutlivesSignalsAndOddPackets) {
  start("none");
  const pid_t group = stop_group();
  send(daemon_.get(), "abc", 3, 0);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) kill(guard_.pid, signal);
  daemon_.reset();
  EXPECT_TRUE(eventually([&] { return state_of(group) == 'S'; }));
}

TEST_F(GuardTest, ThawsOnceByHand) {
  auto tasks = freeze_job();
  if (!tasks) GTEST_SKIP() << "no cgroup2 that may be written";
  SpawnSpec spec;
  spec.path = THAW_PROGRAM;
  spec.argv = {"scored-thaw", "--cgroup-root", root_};
  auto started = spawn(spec);
  ASSERT_TRUE(started);
  EXPECT_EQ((*reap(started->pidfd.get(), true))->code, 0);
  EXPECT_FALSE(tasks->events()->frozen);
}

}  // namespace
}  // namespace score::thaw
