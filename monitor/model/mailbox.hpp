#pragma once
// A Mailbox holds the one document that waits while its viewer is busy with the previous one. It is
// for one thread.

#include "base/async/asio.hpp"
#include "monitor/model/hub.hpp"

#include <utility>

namespace score::monitor {

class Mailbox {
 public:
  explicit Mailbox(asio::any_io_executor executor) : wake_(std::move(executor), 1) {}

  // Stores a document. Returns false if it replaced one that was not taken. A closed mailbox stores
  // nothing.
  bool put(Frame frame) {
    if (is_closed_) return true;
    const bool is_free = frame_ == nullptr;
    frame_ = std::move(frame);
    wake_.try_send(boost::system::error_code());
    return is_free;
  }

  // Waits for a document and returns the newest one, or null if the mailbox is closed.
  asio::awaitable<Frame> take() {
    while (!frame_ && !is_closed_) co_await wake_.async_receive(kNoThrow);
    co_return std::exchange(frame_, nullptr);
  }

  void close() {
    is_closed_ = true;
    frame_ = nullptr;
    wake_.try_send(boost::system::error_code());
  }

 private:
  asio::experimental::channel<void(boost::system::error_code)> wake_;
  Frame frame_;
  bool is_closed_ = false;
};

}  // namespace score::monitor
