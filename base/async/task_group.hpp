#pragma once
// A TaskGroup owns background tasks and waits for their end. It is the only caller of co_spawn in
// the project.
//
// A service has a TaskGroup; start() spawns into it, and stop() is `co_await tasks_.stop()`.
// Destroying a group that still has a task is a bug and asserts. A group is used only on the thread
// of its executor.

#include "base/async/asio.hpp"

#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>

namespace score::inline base {

// Returns what() of an exception, for log lines.
[[nodiscard]] std::string describe_exception(const std::exception_ptr& exception);

class TaskGroup {
 public:
  // Receives the exception with which a task ended. It is not called for operation_aborted while
  // the group stops. It must not throw.
  using FailureHandler =
      std::function<void(std::string_view task, const std::exception_ptr& exception)>;

  TaskGroup(asio::any_io_executor executor, FailureHandler on_failure);
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  ~TaskGroup();

  // Starts a task. The task may run up to its first wait, or to its end, before this returns. The
  // name describes the task to the failure handler. After stop() was called, spawn() drops the task
  // unstarted and returns false. Everything that the task refers to must outlive the group's
  // stop().
  bool spawn(std::string name, asio::awaitable<void> task);

  // Asks all tasks to end: the operations that they wait for throw operation_aborted. It does not
  // wait, and new tasks may still be spawned.
  void cancel();

  // Cancels all tasks, rejects new ones, and returns when all have ended. It cannot be cancelled
  // itself and must not be called from a task of this group. It may be called twice, even
  // concurrently.
  asio::awaitable<void> stop();

  [[nodiscard]] bool empty() const { return tasks_.empty(); }

  [[nodiscard]] std::size_t size() const { return tasks_.size(); }

 private:
  struct Task {
    std::string name;
    asio::cancellation_signal cancel;
  };

  void finish(std::list<Task>::iterator task, const std::exception_ptr& exception);

  asio::any_io_executor executor_;
  FailureHandler on_failure_;
  std::list<Task> tasks_;
  asio::steady_timer all_ended_;  // at infinity; cancelled when the last task ends
  bool stopping_ = false;
};

// Runs the io_context until `task` has ended, then returns its result or throws its exception. This
// is for main() and tests. Other work of the io_context runs in the meantime and remains pending
// afterwards. The io_context must not be stopped in the meantime.
template <typename T>
T run(asio::io_context& io, asio::awaitable<T> task);

namespace detail {

// Runs the io_context until the group is empty.
void run_group(asio::io_context& io, TaskGroup& group);

template <typename T>
asio::awaitable<void> store(asio::awaitable<T> task, std::optional<T>& result) {
  result.emplace(co_await std::move(task));
}

}  // namespace detail

template <typename T>
T run(asio::io_context& io, asio::awaitable<T> task) {
  std::exception_ptr failure;
  TaskGroup group(io.get_executor(),
                  [&failure](std::string_view, const std::exception_ptr& e) { failure = e; });
  if constexpr (std::is_void_v<T>) {
    group.spawn("run", std::move(task));
    detail::run_group(io, group);
    if (failure) std::rethrow_exception(failure);
  } else {
    std::optional<T> result;
    group.spawn("run", detail::store(std::move(task), result));
    detail::run_group(io, group);
    if (failure) std::rethrow_exception(failure);
    return *std::move(result);
  }
}

}  // namespace score::inline base
