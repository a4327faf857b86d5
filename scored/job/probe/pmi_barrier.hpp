#pragma once
// Implements the part of PMI-1 that a barrier of all tasks needs.

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace score::probe {

class PmiBarrier {
 public:
  // Connects to the server that the environment names (PMI_FD). Errors: NotFound (not a task of a
  // scored job), errors of the server.
  static Result<PmiBarrier> join();

  // Waits until all tasks have entered. Errors: Closed.
  Status enter() { return ask("barrier_in", "barrier_out"); }

  // Leaves PMI. The task may end afterwards.
  Status leave() { return ask("finalize", "finalize_ack"); }

 private:
  explicit PmiBarrier(int fd) : fd_(fd) {}

  Status ask(std::string_view command, std::string_view answer);

  int fd_;
};

}  // namespace score::probe
