#include "scored/node/kernel/switch_target.hpp"

#include "scored/node/kernel/kernel_call.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>

namespace score::node {

Result<std::unique_ptr<SwitchTarget>> CgroupFreeze::open(const std::string& cgroup,
                                                         const std::string& idle) {
  auto freezer = open_file(cgroup + "/cgroup.freeze", O_WRONLY);
  if (!freezer) return freezer.error();
  UniqueFd priority;
  if (!idle.empty()) {
    auto opened = open_file(idle, O_WRONLY);
    if (!opened) return opened.error();
    priority = *std::move(opened);
  }
  return std::make_unique<CgroupFreeze>(*std::move(freezer), std::move(priority));
}

[[gnu::hot]] int write_control(int control, char value) noexcept {
  const long done = kernel_call(SYS_pwrite64, control, address_of(&value), 1, 0);
  if (done < 0) return static_cast<int>(-done);
  return done == 1 ? 0 : EIO;
}

int SignalGroup::stop() noexcept {
  return kill(-group_, SIGSTOP) == 0 ? 0 : errno;
}

int SignalGroup::go() noexcept {
  return kill(-group_, SIGCONT) == 0 ? 0 : errno;
}

}  // namespace score::node
