#include "scored/node/kernel/run_clock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace score::node {
namespace {

using namespace std::chrono_literals;

TEST(RunClock, CountsARepeatedStartOnce) {
  RunClock clock;
  EXPECT_FALSE(clock.is_running());
  clock.start(TimePoint{1s});
  clock.start(TimePoint{2s});
  EXPECT_EQ(clock.read(TimePoint{4s}), 3s);
  clock.stop(TimePoint{5s});
  clock.stop(TimePoint{6s});
  EXPECT_EQ(clock.read(TimePoint{9s}), 4s);
}

// The reader may see the stores of stop() one by one.
TEST(RunClock, CountsNoRunTwice) {
  constexpr Duration kStart = 1s;
  RunClock clock;
  std::atomic<Duration> now{kStart};
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    for (int run = 0; run < 2'000'000; ++run) {
      clock.start(TimePoint{now.load()});
      now = now.load() + 1ms;
      clock.stop(TimePoint{now.load()});
      // A pause, so that the reader's time does not run ahead of a sum that is too large.
      for (int i = 0; i < 50; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    is_over = true;
  });
  int twice = 0;
  while (!is_over) {
    const Duration ran = clock.read(TimePoint{now.load()});
    if (ran > now.load() - kStart) ++twice;
  }
  writer.join();
  EXPECT_EQ(twice, 0);
  EXPECT_EQ(clock.read(TimePoint{now.load()}), now.load() - kStart);
}

}  // namespace
}  // namespace score::node
