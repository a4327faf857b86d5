#pragma once
// This is the only place where work races against a deadline.

#include "base/async/clock.hpp"
#include "base/result.hpp"

#include <optional>

namespace score::inline base {

namespace detail {

// Settled is the outcome of the work: a result, or an exception to rethrow. It is no aggregate,
// because of g++ 12.
template <typename T>
struct Settled {
  Settled() = default;
  std::optional<Result<T>> result;
  std::exception_ptr exception;
};

// Never throws. The operator || waits for the first operand that succeeds, so work that threw would
// make it wait for the deadline.
template <typename T>
asio::awaitable<Settled<T>> settle(asio::awaitable<Result<T>> work) {
  Settled<T> settled;
  try {
    settled.result.emplace(co_await std::move(work));
  } catch (...) {
    settled.exception = std::current_exception();
  }
  co_return settled;
}

}  // namespace detail

// Returns the result of the work, or Errc::Timeout if now() reaches `deadline` first; the work is
// then cancelled and has ended when this returns. Exceptions of the work and cancellation of the
// caller pass through. Work that does not react to cancellation delays the return. `clock` must
// outlive the task.
template <typename T>
asio::awaitable<Result<T>> with_deadline(Clock& clock, TimePoint deadline,
                                         asio::awaitable<Result<T>> work) {
  using namespace asio::experimental::awaitable_operators;
  auto settled = detail::settle(std::move(work));
  auto alarm = clock.sleep_until(deadline);
  auto first = co_await (std::move(settled) || std::move(alarm));
  if (first.index() == 1) co_return Error(Errc::Timeout);
  auto& done = std::get<0>(first);
  if (done.exception) std::rethrow_exception(done.exception);
  co_return *std::move(done.result);
}

template <typename T>
asio::awaitable<Result<T>> with_timeout(Clock& clock, Duration timeout,
                                        asio::awaitable<Result<T>> work) {
  return with_deadline(clock, clock.now() + timeout, std::move(work));
}

}  // namespace score::inline base
