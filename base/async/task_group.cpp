#include "base/async/task_group.hpp"

#include "base/assert.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>

namespace score::inline base {

namespace {

bool is_cancellation(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const boost::system::system_error& error) {
    return error.code() == asio::error::operation_aborted;
  } catch (...) {
    return false;
  }
}

}  // namespace

std::string describe_exception(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown exception";
  }
}

TaskGroup::TaskGroup(asio::any_io_executor executor, FailureHandler on_failure)
    : executor_(std::move(executor)),
      on_failure_(std::move(on_failure)),
      all_ended_(executor_, asio::steady_timer::time_point::max()) {}

TaskGroup::~TaskGroup() {
  SCORE_ASSERT(tasks_.empty(), "tasks={} first={}", tasks_.size(), tasks_.front().name);
}

bool TaskGroup::spawn(std::string name, asio::awaitable<void> task) {
  if (stopping_) return false;
  const auto place = tasks_.emplace(tasks_.end());
  place->name = std::move(name);
  auto done = [this, place](const std::exception_ptr& exception) { finish(place, exception); };
  asio::co_spawn(executor_, std::move(task),
                 asio::bind_cancellation_slot(place->cancel.slot(), std::move(done)));
  return true;
}

void TaskGroup::finish(std::list<Task>::iterator task, const std::exception_ptr& exception) {
  std::list<Task> ended;
  ended.splice(ended.end(), tasks_, task);
  if (exception && !(stopping_ && is_cancellation(exception))) {
    on_failure_(ended.front().name, exception);
  }
  if (tasks_.empty()) all_ended_.cancel();
}

void TaskGroup::cancel() {
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    const auto current = task++;
    current->cancel.emit(asio::cancellation_type::terminal);
  }
}

asio::awaitable<void> TaskGroup::stop() {
  stopping_ = true;
  cancel();
  // The caller may itself be cancelled, and must wait nevertheless. So no exception is thrown at
  // its co_await, and a wait that is cut short is repeated.
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  while (!tasks_.empty()) {
    [[maybe_unused]] const auto [error] = co_await all_ended_.async_wait(kNoThrow);
  }
  co_await asio::this_coro::throw_if_cancelled(throws);
}

namespace detail {

void run_group(asio::io_context& io, TaskGroup& group) {
  io.restart();
  while (!group.empty()) {
    // A task that waits keeps the io_context busy, so it cannot run out of work.
    SCORE_ASSERT(io.run_one() > 0, "the io_context was stopped under a task");
  }
}

}  // namespace detail

}  // namespace score::inline base
