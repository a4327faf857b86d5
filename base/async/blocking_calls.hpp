#pragma once
// Calls that may block for as long as they like, such as questions to the directory of users: on
// threads of their own, so that the loop goes on. A call that hangs holds one of the threads and
// nothing else, not even the end of the process.

#include "base/async/asio.hpp"

#include <cstddef>
#include <functional>
#include <memory>

namespace score::inline base {

class BlockingCalls {
 public:
  // io must outlive it. threads > 0; they are made at the first call.
  BlockingCalls(asio::io_context& io, std::size_t threads);
  // Forgets the calls that wait. One that hangs ends its thread when it returns.
  ~BlockingCalls();
  BlockingCalls(const BlockingCalls&) = delete;
  BlockingCalls& operator=(const BlockingCalls&) = delete;

  // `work` on one of the threads, as soon as one is free; then `done` in the loop. `work` must not
  // touch what the loop uses, nor throw.
  void run(std::function<void()> work, std::function<void()> done);

 private:
  struct State;

  std::shared_ptr<State> state_;
  std::size_t threads_;
};

}  // namespace score::inline base
