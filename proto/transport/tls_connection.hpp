// Connects the head and the nodes: TCP under TLS 1.3 with the node's pre-shared key.
#pragma once

#include "base/os/fd.hpp"
#include "proto/transport/connection.hpp"
#include "proto/transport/tls.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace score::proto {

struct TlsPeer {
  std::shared_ptr<Connection> connection;
  std::string name;  // proven name of the node, or identity of its token; on a node empty
};

struct TcpEndpoint {
  std::string host;  // address or name
  std::uint16_t port = 0;

  friend bool operator==(const TcpEndpoint&, const TcpEndpoint&) = default;
};

// Parses "host:port" or "[v6]:port". Errors: Malformed.
base::Result<TcpEndpoint> parse_endpoint(std::string_view text);
std::string format_endpoint(const TcpEndpoint& endpoint);

// TcpListener is the head's side. Accepting and the handshake are separate steps, so that a peer
// with a slow handshake delays no other peer: loop { accept(); spawn { handshake } }.
class TcpListener {
 public:
  // `host` must be an address ("0.0.0.0", "::", "127.0.0.1"); for port 0 the kernel chooses one.
  static base::Result<TcpListener> open(boost::asio::any_io_executor executor,
                                        const TcpEndpoint& where);

  // Returns a connected socket for tls_accept. Errors: see accept_descriptor.
  boost::asio::awaitable<base::Result<base::UniqueFd>> accept();
  void close();

  std::uint16_t port() const { return port_; }

 private:
  TcpListener(boost::asio::ip::tcp::acceptor acceptor, std::uint16_t port);

  boost::asio::ip::tcp::acceptor acceptor_;
  std::uint16_t port_;
};

// Proves the identity of the peer on a socket from TcpListener::accept. `context` must outlive the
// connection. Errors: BadPeer (unknown name, wrong key, not TLS), Timeout, Closed.
boost::asio::awaitable<base::Result<TlsPeer>> tls_accept(const TlsContext& context,
                                                         base::UniqueFd fd, base::Duration deadline,
                                                         ConnectionLimits limits);

// Connects from a node to the head. `deadline` applies separately to the name lookup, the
// connection and the handshake.
boost::asio::awaitable<base::Result<TlsPeer>> tls_connect(const TlsContext& context,
                                                          TcpEndpoint where,
                                                          base::Duration deadline,
                                                          ConnectionLimits limits);

}  // namespace score::proto
