#pragma once
// Provides TLS for the web server, with a certificate for browsers instead of the daemons' own
// keys.

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

// Loads PEM files: the certificate with its chain, and its key. TLS 1.2 and newer are allowed.
// Errors name the file; Denied: all users can read the key.
[[nodiscard]] Result<TlsFrontPtr> load_tls(const std::string& certificate, const std::string& key);

// Returns, after the handshake, the plain end of a connection that speaks TLS with `socket`'s peer.
// Two tasks of `tasks` do the rest; they end when either side ends. All arguments must outlive
// them. Errors: the peer's, or Timeout after 5 s.
[[nodiscard]] asio::awaitable<Result<asio::generic::stream_protocol::socket>> secure(
    Clock& clock, TaskGroup& tasks, TlsFront& front, asio::ip::tcp::socket socket);

}  // namespace score::monitor
