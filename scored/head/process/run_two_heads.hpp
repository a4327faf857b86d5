#pragma once
// This is one of two heads (docs/adr/0089): a standby until it is elected, then the head in charge.
// When it is not in charge any more, the process executes its program anew, so that no state is
// left over.

#include "base/result.hpp"
#include "scored/head/process/head_daemon.hpp"

#include <string>
#include <vector>

namespace score::head {

struct TwoHeadsOptions {
  std::vector<std::string> arguments;  // of the program, without its name
  Daemon::Options daemon;
  bool is_forced = false;  // --take-charge
};

// Returns the exit status. It fails if the head could not start.
[[nodiscard]] Result<int> run_two_heads(TwoHeadsOptions options);

}  // namespace score::head
