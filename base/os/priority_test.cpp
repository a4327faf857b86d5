#include "base/os/priority.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score {
namespace {

// Sets the value in a child with its own session. Returns 0 if both values are as requested,
// otherwise a number for the difference.
int nice_in_child(int nice) {
  const pid_t child = fork();
  if (child == 0) {
    if (setsid() < 0 || !set_nice(nice)) _exit(1);
    if (getpriority(PRIO_PROCESS, 0) != nice) _exit(2);
    std::string line;
    std::ifstream file("/proc/self/autogroup");
    const bool has_groups = static_cast<bool>(std::getline(file, line));
    _exit(has_groups && !line.ends_with("nice " + std::to_string(nice)) ? 3 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Priority, SetsProcessAndSession) {
  EXPECT_EQ(nice_in_child(5), 0);
}

TEST(Priority, AllowsNegativeValuesForRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "needs CAP_SYS_NICE";
  EXPECT_EQ(nice_in_child(-10), 0);
}

}  // namespace
}  // namespace score
