// Selects the signals that a program handles. A signal that was ignored when the program started
// stays ignored, as nohup(1) and shells that start commands in the background expect.
#pragma once

#include <csignal>
#include <signal.h>
#include <span>

namespace score::inline base {

// Returns the signals of `wanted` that are not ignored now. Call it before any of them gets a
// handler. A blocked signal is queued even while it is ignored (a signalfd would deliver it), so
// only this set may be blocked.
inline sigset_t signals_to_handle(std::span<const int> wanted) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : wanted) {
    struct sigaction now = {};
    const bool is_ignored = sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
    if (!is_ignored) sigaddset(&set, signal);
  }
  return set;
}

}  // namespace score::inline base
