// The terminal that --pty hands to rank 0.
#pragma once

#include "base/result.hpp"

#include <termios.h>

namespace score::scout {

// Puts the terminal of a descriptor into raw mode for as long as it lives.
class RawTerminal {
 public:
  RawTerminal() = default;
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  ~RawTerminal() { leave(); }

  Status enter(int fd);  // again: no change
  void leave();          // idempotent

 private:
  int fd_ = -1;
  termios saved_{};
};

// May this process read the terminal without being stopped (SIGTTIN)? True if it is no terminal.
bool may_read(int fd);

}  // namespace score::scout
