#pragma once
// BlockingCalls runs calls that may block for any time, such as lookups in the directory of users,
// on separate threads, so that the loop goes on. A call that hangs holds one of these threads and
// nothing else; it does not even delay the end of the process.

#include "base/async/asio.hpp"

#include <cstddef>
#include <functional>
#include <memory>

namespace score::inline base {

class BlockingCalls {
 public:
  // `io` must outlive this object. `threads` > 0; the threads are created at the first call.
  BlockingCalls(asio::io_context& io, std::size_t threads);
  // Drops the calls that wait. A call that hangs ends its thread when it returns.
  ~BlockingCalls();
  BlockingCalls(const BlockingCalls&) = delete;
  BlockingCalls& operator=(const BlockingCalls&) = delete;

  // Runs `work` on one of the threads as soon as one is free, then `done` in the loop. `work` must
  // neither touch what the loop uses nor throw.
  void run(std::function<void()> work, std::function<void()> done);

 private:
  struct State;

  std::shared_ptr<State> state_;
  std::size_t threads_;
};

}  // namespace score::inline base
