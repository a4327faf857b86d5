// scored-launcher: the one part that may be root. See protocol.hpp.
#include "base/os/priority.hpp"
#include "scored/launcher/options.hpp"
#include "scored/launcher/server.hpp"

#include <csignal>
#include <fcntl.h>
#include <sys/prctl.h>
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
  score::set_nice(-10);  // before busy tasks; what it starts begins at 0 again
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  static score::launcher::Server server(options);
  if (!server.start()) return 1;
  server.run();
}
