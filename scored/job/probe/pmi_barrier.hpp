#pragma once
// PMI-1, as far as a barrier of all tasks needs it.

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace score::probe {

class PmiBarrier {
 public:
  // By the environment (PMI_FD). Errors: NotFound (no job of scored), what the server says.
  static Result<PmiBarrier> join();

  // Waits for all. Errors: Closed.
  Status enter() { return ask("barrier_in", "barrier_out"); }

  // This task may end.
  Status leave() { return ask("finalize", "finalize_ack"); }

 private:
  explicit PmiBarrier(int fd) : fd_(fd) {}

  Status ask(std::string_view command, std::string_view answer);

  int fd_;
};

}  // namespace score::probe
