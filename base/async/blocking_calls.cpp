// The threads are detached. Each one holds the state that it shares with the loop, and checks
// whether the loop still exists before it posts its result.
#include "base/async/blocking_calls.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace score::inline base {

struct BlockingCalls::State {
  struct Call {
    std::function<void()> work, done;
  };

  explicit State(asio::io_context& io_in) : io(io_in) {}

  asio::io_context& io;  // only while !is_over
  std::mutex mutex;
  std::condition_variable has_work;
  std::deque<Call> waiting;
  bool is_over = false;
  bool has_threads = false;

  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      has_work.wait(lock, [this] { return is_over || !waiting.empty(); });
      if (is_over) return;
      Call call = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      call.work();
      lock.lock();
      if (is_over) return;
      asio::post(io, std::move(call.done));
    }
  }
};

BlockingCalls::BlockingCalls(asio::io_context& io, std::size_t threads)
    : state_(std::make_shared<State>(io)), threads_(threads) {}

BlockingCalls::~BlockingCalls() {
  const std::lock_guard lock(state_->mutex);
  state_->is_over = true;
  state_->waiting.clear();
  state_->has_work.notify_all();
}

void BlockingCalls::run(std::function<void()> work, std::function<void()> done) {
  const std::lock_guard lock(state_->mutex);
  state_->waiting.push_back({std::move(work), std::move(done)});
  state_->has_work.notify_one();
  if (std::exchange(state_->has_threads, true)) return;
  for (std::size_t i = 0; i < threads_; ++i) {
    std::thread([state = state_] { state->serve(); }).detach();
  }
}

}  // namespace score::inline base
