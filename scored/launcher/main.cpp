// scored-launcher: the one part that may be root. See protocol.hpp.
#include "base/os/priority.hpp"
#include "scored/launcher/options.hpp"
#include "scored/launcher/server.hpp"

#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

// So that no descriptor opened later is taken for one of the three.
bool have_standard_descriptors() {
  int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  while (fd >= 0 && fd <= 2) {
    fcntl(fd, F_SETFD, 0);
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  }
  if (fd > 2) close(fd);
  return fd > 2;
}

// Leaves this process what it uses. The bounding set stays whole: jobs inherit it, and set-user-id
// programs of jobs need it.
bool give_up_capabilities(bool has_rings) {
  std::uint64_t kept = 0;
  for (const unsigned one : {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_KILL, CAP_NET_RAW, CAP_SETGID,
                             CAP_SETUID, CAP_SYS_NICE, CAP_SYS_RESOURCE}) {
    kept |= std::uint64_t{1} << one;
  }
  for (const unsigned one : {CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_BPF}) {
    if (has_rings) kept |= std::uint64_t{1} << one;
  }
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct now[2] = {};
  if (syscall(SYS_capget, &header, now) != 0) return false;
  for (unsigned half = 0; half < 2; ++half) {
    now[half].permitted &= static_cast<std::uint32_t>(kept >> (32 * half));
    now[half].effective = now[half].permitted;
    now[half].inheritable = 0;
  }
  return syscall(SYS_capset, &header, now) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  score::launcher::Options options;
  switch (score::launcher::parse_options(argc, argv, options)) {
    case score::launcher::Parsed::Help:
      return 0;
    case score::launcher::Parsed::Bad:
      return 2;
    case score::launcher::Parsed::Run:
      break;
  }
  if (!have_standard_descriptors()) return 1;
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  if (!give_up_capabilities(options.interface != nullptr)) return 1;
  score::set_nice(-10);  // before busy tasks; what it starts begins at 0 again
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  static score::launcher::Server server(options);
  if (!server.start()) return 1;
  server.run();
}
