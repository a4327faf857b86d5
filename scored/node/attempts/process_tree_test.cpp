// These tests use processes of their own.
#include "scored/node/attempts/process_tree.hpp"

#include "base/os/spawn.hpp"

#include <gtest/gtest.h>

#include <array>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::node {
namespace {

TEST(ProcessTree, EndingAndEndedProcessesAreRecognized) {
  const pid_t child = fork();
  if (child == 0) pause();
  EXPECT_FALSE(is_ending(child));
  kill(child, SIGTERM);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(is_ending(child));
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(is_ending(child)) << "it no longer exists";
  EXPECT_FALSE(is_ending(getpid()));
}

TEST(ProcessTree, AncestorsAreFromParentToRoot) {
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const pid_t grandchild = fork();
    if (grandchild > 0 && write(pipe_ends[1], &grandchild, sizeof grandchild) < 0) _exit(1);
    pause();
  }
  pid_t grandchild = 0;
  ASSERT_EQ(read(pipe_ends[0], &grandchild, sizeof grandchild), ssize_t{sizeof grandchild});
  const auto found = ancestors(grandchild);
  ASSERT_GE(found.size(), 2U);
  EXPECT_EQ(found[0], child);
  EXPECT_EQ(found[1], getpid());
  EXPECT_EQ(ancestors(child).at(0), getpid());
  EXPECT_EQ(ancestors(child).size() + 1, found.size());
  EXPECT_TRUE(ancestors(0).empty());
  for (const pid_t pid : {grandchild, child}) kill(pid, SIGKILL);
  waitpid(child, nullptr, 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST(ProcessTree, EndSignalIsKnownOnceProcessIsReaped) {
  for (const int signal : {SIGKILL, 0}) {
    const pid_t child = fork();
    if (child == 0) {
      if (signal == 0) _exit(137);
      pause();
    }
    const auto pidfd = open_pidfd(child);
    ASSERT_TRUE(pidfd);
    if (signal != 0) kill(child, signal);
    siginfo_t info{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
    EXPECT_EQ(signal_that_ended(pidfd->get()), std::nullopt);
    waitpid(child, nullptr, 0);
    const auto ended = signal_that_ended(pidfd->get());
    if (!ended)
      GTEST_SKIP() << "this kernel does not report how a process that is not a child ended";
    EXPECT_EQ(*ended, signal);
  }
}

}  // namespace
}  // namespace score::node
