// Makes the system calls of the switcher's thread in place. The thread wakes up between other
// processes' tasks and finds every page cold. libc and the vdso then cost more than the kernel's
// part, because each touches more pages of code and data.
#pragma once

#include "base/cpu/system_call.hpp"
#include "base/time.hpp"

#include <ctime>

namespace score::node {

// Works like syscall(2), but returns -errno.
[[gnu::always_inline]] inline long kernel_call(long number, long a, long b, long c = 0, long d = 0,
                                               long e = 0, long f = 0) noexcept {
  return base::system_call(number, a, b, c, d, e, f);
}

template <typename T>
[[gnu::always_inline]] inline long address_of(T* object) noexcept {
  return reinterpret_cast<long>(object);
}

// Returns < 0 if there is no such clock.
[[gnu::always_inline]] inline Duration kernel_time(clockid_t clock) noexcept {
  timespec time{};
  if (kernel_call(SYS_clock_gettime, clock, address_of(&time)) != 0) return Duration{-1};
  return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec);
}

// Works like clock_getcpuclockid(3), without the system call that checks the process.
[[nodiscard]] constexpr clockid_t cpu_clock_of(pid_t process) noexcept {
  constexpr unsigned kWholeProcessScheduled = 2;
  return static_cast<clockid_t>(~static_cast<unsigned>(process) << 3 | kWholeProcessScheduled);
}

}  // namespace score::node
