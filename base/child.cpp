#include "base/child.hpp"

#include <csignal>
#include <tuple>

namespace score::inline base {

ChildProcess::ChildProcess(const asio::any_io_executor& executor, SpawnedProcess process)
    : pid_(process.pid), pidfd_(executor, process.pidfd.release()) {}

std::expected<ChildProcess, SpawnFailure> ChildProcess::start(const asio::any_io_executor& executor,
                                                              const SpawnSpec& spec) {
  auto process = spawn(spec);
  if (!process) return std::unexpected(std::move(process).error());
  return ChildProcess(executor, *std::move(process));
}

ChildProcess::~ChildProcess() {
  if (!pidfd_.is_open() || status_) return;
  // Both may fail if somebody else collected it: nothing is left to do then.
  std::ignore = send_signal(pidfd_.native_handle(), SIGKILL);
  std::ignore = reap(pidfd_.native_handle(), true);
}

asio::awaitable<Result<ExitStatus>> ChildProcess::wait() {
  while (!status_) {
    co_await pidfd_.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
    if (status_) break;  // another wait() was first
    const auto ended = reap(pidfd_.native_handle(), false);
    if (!ended) co_return ended.error();
    status_ = *ended;
  }
  co_return *status_;
}

Status ChildProcess::signal(int number) {
  // After the end was collected the kernel says the same.
  return send_signal(pidfd_.native_handle(), number);
}

}  // namespace score::inline base
