#pragma once
// One of two heads (docs/adr/0089): a standby until it is elected, then the head in charge. When it
// is in charge no more, the process executes its program anew, so that nothing of that is left.

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

// The exit status. Errors: it could not start.
[[nodiscard]] Result<int> run_two_heads(TwoHeadsOptions options);

}  // namespace score::head
