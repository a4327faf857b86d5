#include "base/cpu/counter.hpp"
#include "base/cpu/system_call.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>

namespace score::inline base {
namespace {

TEST(Counter, NeverGoesBack) {
  if (!has_steady_counter()) GTEST_SKIP() << "the processor has no steady counter";
  const std::uint64_t before = read_counter();
  EXPECT_NE(before, 0u);
  for (std::uint64_t now = before, last = before; now < before + 1000; last = now) {
    now = read_counter();
    ASSERT_GE(now, last);
  }
}

TEST(SystemCall, PassesSixArguments) {
  const long at =
      system_call(SYS_mmap, 0, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_GT(at, 0);
  *reinterpret_cast<char*>(at) = 1;
  EXPECT_EQ(system_call(SYS_munmap, at, 1, 0, 0, 0, 0), 0);
}

TEST(SystemCall, ReturnsErrorAsNegativeNumber) {
  EXPECT_EQ(system_call(SYS_close, -1, 0, 0, 0, 0, 0), -EBADF);
  EXPECT_EQ(system_call(SYS_mmap, 0, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 1), -EINVAL);
}

}  // namespace
}  // namespace score::inline base
