#pragma once
// TLS of the web server: a certificate for browsers, unlike the daemons' own keys.

#include "base/async/asio_generic.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "base/result.hpp"

#include <memory>
#include <string>

namespace score::monitor {

struct TlsFront;

struct DropTlsFront {
  void operator()(TlsFront* front) const;
};

using TlsFrontPtr = std::unique_ptr<TlsFront, DropTlsFront>;

// PEM files: the certificate with its chain, and its key. TLS 1.2 and newer. Errors name the file;
// Denied: all users can read the key.
[[nodiscard]] Result<TlsFrontPtr> load_tls(const std::string& certificate, const std::string& key);

// The plain end of a connection that speaks TLS with `socket`'s peer, after the handshake; the rest
// is done by two tasks of `tasks`, which end when either side does. All outlive those. Errors: the
// peer's, or Timeout after 5 s.
[[nodiscard]] asio::awaitable<Result<asio::generic::stream_protocol::socket>> secure(
    Clock& clock, TaskGroup& tasks, TlsFront& front, asio::ip::tcp::socket socket);

}  // namespace score::monitor
