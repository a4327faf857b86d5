#include "scored/node/network/device_check.hpp"

#include "pmlib/devices/ofi_device.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <fcntl.h>
#include <net/if.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::node {

namespace {

bool has_provider(const std::string& name) {
  const pid_t child = fork();
  if (child == 0) {
    const int null_device = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) dup2(null_device, fd);
    _exit(pm::OfiDevice::has_provider(name.c_str()) ? 0 : 1);
  }
  int status = 1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::string missing_device(const NetworkConfig& config) {
  for (const NetworkLink& link : config.links) {
    if (!link.interface.empty() && if_nametoindex(link.interface.c_str()) == 0) {
      return fmt::format("no network: no interface {}", link.interface);
    }
    if (link.device == NetworkDevice::Ofi && !has_provider(link.provider)) {
      return fmt::format("no network: libfabric has no provider {}", link.provider);
    }
  }
  return {};
}

}  // namespace score::node
