#pragma once
// Background tasks that somebody waits for. The only caller of co_spawn in the project.
//
// A service has a TaskGroup, start() spawns into it, stop() is `co_await tasks_.stop()`. A group
// that is destroyed with a task in it is a bug and asserts. One thread: that of the executor.

#include "base/async/asio.hpp"

#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>

namespace score::inline base {

// what() of an exception, for log lines.
[[nodiscard]] std::string describe_exception(const std::exception_ptr& exception);

class TaskGroup {
 public:
  // Gets the exception a task ended with. Not called for operation_aborted while the group stops.
  // Must not throw.
  using FailureHandler =
      std::function<void(std::string_view task, const std::exception_ptr& exception)>;

  TaskGroup(asio::any_io_executor executor, FailureHandler on_failure);
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  ~TaskGroup();

  // Starts a task; it may run up to its first wait, or to its end, before this returns. The name
  // says what it does, for the failure handler. False, and the task is dropped unstarted, once
  // stop() was called. What the task refers to must outlive the group's stop().
  bool spawn(std::string name, asio::awaitable<void> task);

  // Asks all tasks to end: what they wait for throws operation_aborted. Does not wait; new tasks
  // may still be spawned.
  void cancel();

  // Cancels, refuses new tasks, returns when all have ended; cannot itself be cancelled. Not from a
  // task of this group. May be called twice, also at once.
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

// Runs the io_context until `task` has ended and gives its result or throws its exception. For
// main() and tests. Other work of the io_context runs meanwhile and is left where it is afterwards.
// Nobody may stop() the io_context meanwhile.
template <typename T>
T run(asio::io_context& io, asio::awaitable<T> task);

namespace detail {

// Turns the crank until the group is empty.
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
