// With processes of its own.
#include "scored/node/attempts/process_tree.hpp"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::node {
namespace {

TEST(ProcessTree, TellsWhoEndsOrHasEnded) {
  const pid_t child = fork();
  if (child == 0) pause();
  EXPECT_FALSE(is_ending(child));
  kill(child, SIGTERM);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(is_ending(child));
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(is_ending(child)) << "there is none";
  EXPECT_FALSE(is_ending(getpid()));
}

}  // namespace
}  // namespace score::node
