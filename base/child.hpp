#pragma once
// A child process with one owner. Pid and pidfd live together; the end of the child is an event on
// the pidfd. There is no SIGCHLD handler and no table of pids, so no child can be missed or
// mistaken.

#include "base/asio.hpp"
#include "base/spawn.hpp"

#include <expected>
#include <optional>

namespace score::inline base {

// Movable; must not be moved or destroyed while wait() is under way.
class ChildProcess {
 public:
  // Takes over a child that spawn() started.
  ChildProcess(const asio::any_io_executor& executor, SpawnedProcess process);
  static std::expected<ChildProcess, SpawnFailure> start(const asio::any_io_executor& executor,
                                                         const SpawnSpec& spec);

  ChildProcess(ChildProcess&&) = default;
  ChildProcess& operator=(ChildProcess&&) = delete;
  // A child that was not waited for is killed (SIGKILL) and collected; that blocks until it is
  // gone.
  ~ChildProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }

  // How it ended. May be called again: the status is kept. Errors: ECHILD if somebody else
  // collected it. Cancellation throws operation_aborted and leaves the child as it is.
  asio::awaitable<Result<ExitStatus>> wait();

  // Errors: ESRCH once it has ended.
  [[nodiscard]] Status signal(int number);

  // Set once wait() has returned it.
  [[nodiscard]] const std::optional<ExitStatus>& status() const { return status_; }

 private:
  pid_t pid_;
  asio::posix::stream_descriptor pidfd_;
  std::optional<ExitStatus> status_;
};

}  // namespace score::inline base
