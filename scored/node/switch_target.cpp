#include "scored/node/switch_target.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace score::node {

Result<std::unique_ptr<SwitchTarget>> CgroupFreeze::open(const std::string& cgroup) {
  auto control = open_file(cgroup + "/cgroup.freeze", O_WRONLY);
  if (!control) return control.error();
  return std::make_unique<CgroupFreeze>(*std::move(control));
}

// Not libc's pwrite, a cancellation point: one page of code less that a switch finds cold.
[[gnu::hot]] int CgroupFreeze::put(char value) noexcept {
  return syscall(SYS_pwrite64, control_.get(), &value, std::size_t{1}, 0L) == 1 ? 0 : errno;
}

int SignalGroup::stop() noexcept {
  return kill(-group_, SIGSTOP) == 0 ? 0 : errno;
}

int SignalGroup::go() noexcept {
  return kill(-group_, SIGCONT) == 0 ? 0 : errno;
}

}  // namespace score::node
