#include "pmlib/fi/vain/call_return.hpp"

#include <cstdint>
#include <cstdlib>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace score::pm::fi {

CallReturn::~CallReturn() {
  stop();
}

bool CallReturn::watch(const void* address) {
  // Images of processes cannot contain a watch.
  static const bool is_forbidden = std::getenv("PM_NO_WATCHED_CALLS") != nullptr;
  if (is_forbidden) return false;
  stop();
  perf_event_attr event{};
  event.type = PERF_TYPE_BREAKPOINT;
  event.size = sizeof event;
  event.bp_type = HW_BREAKPOINT_X;
  event.bp_addr = reinterpret_cast<std::uintptr_t>(address);
  event.bp_len = sizeof(long);
  event.sample_period = 1;
  event.disabled = 1;
  event.exclude_kernel = event.exclude_hv = 1;
  constexpr int kThisThread = 0, kAnyProcessor = -1, kNoGroup = -1;
  fd_ = static_cast<int>(syscall(SYS_perf_event_open, &event, kThisThread, kAnyProcessor, kNoGroup,
                                 PERF_FLAG_FD_CLOEXEC));
  if (fd_ < 0) return false;
  if (ioctl(fd_, PERF_EVENT_IOC_REFRESH, 1) == 0) return true;  // count once, then stop
  stop();
  return false;
}

bool CallReturn::has_returned() const {
  std::uint64_t count = 0;
  return fd_ < 0 || read(fd_, &count, sizeof count) != sizeof count || count != 0;
}

void CallReturn::stop() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

}  // namespace score::pm::fi
