// Unix and TCP listeners share this part of accepting.
#pragma once

#include "base/async/asio.hpp"
#include "base/os/fd.hpp"
#include "base/result.hpp"

namespace score::proto {

// Accepts one connection and returns its descriptor. A peer that has already disconnected is
// skipped. If descriptors or memory are short, it waits 100 ms and tries again; until then peers
// stay in the kernel's backlog. `acceptor` must outlive the call. Errors: Closed, Cancelled.
template <class Acceptor>
boost::asio::awaitable<base::Result<base::UniqueFd>> accept_descriptor(Acceptor& acceptor) {
  namespace asio = boost::asio;
  constexpr base::Duration kPause = std::chrono::milliseconds(100);
  for (;;) {
    auto [ec, socket] = co_await acceptor.async_accept(kNoThrow);
    if (!ec) {
      boost::system::error_code released;
      int fd = socket.release(released);
      if (released) co_return base::fail(released, "cannot accept");
      co_return base::UniqueFd(fd);
    }
    if (!acceptor.is_open()) co_return base::fail(base::Errc::Closed, "cannot accept");
    if (ec == asio::error::operation_aborted)
      co_return base::fail(base::Errc::Cancelled, "cannot accept");
    if (ec == asio::error::connection_aborted) continue;
    asio::steady_timer pause(acceptor.get_executor(), kPause);
    auto [waited] = co_await pause.async_wait(kNoThrow);
    if (waited) co_return base::fail(base::Errc::Cancelled, "cannot accept");
    if (!acceptor.is_open()) co_return base::fail(base::Errc::Closed, "cannot accept");
  }
}

}  // namespace score::proto
