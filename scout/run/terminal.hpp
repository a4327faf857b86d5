// Manages the terminal that --pty gives to rank 0.
#pragma once

#include "base/result.hpp"

#include <termios.h>

namespace score::scout {

// Puts the terminal of a descriptor into raw mode for as long as this object lives.
class RawTerminal {
 public:
  RawTerminal() = default;
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  ~RawTerminal() { leave(); }

  Status enter(int fd);  // a second call changes nothing
  void leave();          // idempotent

 private:
  int fd_ = -1;
  termios saved_{};
};

// Returns true if this process may read the terminal without being stopped by SIGTTIN, or if the
// descriptor is not a terminal.
bool may_read(int fd);

}  // namespace score::scout
