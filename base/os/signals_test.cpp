#include "base/os/signals.hpp"

#include <gtest/gtest.h>

namespace score::inline base {
namespace {

TEST(Signals, IgnoredOnesAreNotHandled) {
  const auto before = std::signal(SIGUSR2, SIG_IGN);
  const int wanted[] = {SIGUSR1, SIGUSR2};
  const sigset_t set = signals_to_handle(wanted);
  std::signal(SIGUSR2, before);
  EXPECT_EQ(sigismember(&set, SIGUSR1), 1);
  EXPECT_EQ(sigismember(&set, SIGUSR2), 0);
  EXPECT_EQ(sigismember(&set, SIGTERM), 0);
}

}  // namespace
}  // namespace score::inline base
