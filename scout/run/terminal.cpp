#include "scout/run/terminal.hpp"

#include <cerrno>
#include <unistd.h>

namespace score::scout {

Status RawTerminal::enter(int fd) {
  if (fd_ >= 0) return {};
  if (tcgetattr(fd, &saved_) != 0)
    return fail(errno_code(errno), "--pty: cannot read the terminal settings of standard input");
  termios raw = saved_;
  cfmakeraw(&raw);
  if (tcsetattr(fd, TCSADRAIN, &raw) != 0)
    return fail(errno_code(errno), "--pty: cannot set the terminal to raw mode");
  fd_ = fd;
  return {};
}

void RawTerminal::leave() {
  if (fd_ >= 0) tcsetattr(fd_, TCSADRAIN, &saved_);
  fd_ = -1;
}

bool may_read(int fd) {
  const pid_t foreground = tcgetpgrp(fd);
  return foreground < 0 || foreground == getpgrp();
}

}  // namespace score::scout
