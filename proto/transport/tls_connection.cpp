#include "proto/transport/tls_connection.hpp"

#include "base/async/timeout.hpp"
#include "base/text.hpp"
#include "proto/frames/errc.hpp"
#include "proto/transport/accept.hpp"
#include "proto/transport/stream_connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace score::proto {

namespace asio = boost::asio;
using asio::ip::tcp;
using base::Result;

namespace {

constexpr int kBacklog = 4096;

std::string address_text(const tcp::endpoint& endpoint) {
  return format_endpoint({endpoint.address().to_string(), endpoint.port()});
}

std::string remote_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "unknown";
  tcp::endpoint endpoint;
  if (size > endpoint.capacity()) return "unknown";
  std::memcpy(endpoint.data(), &address, size);
  endpoint.resize(size);
  return address_text(endpoint);
}

Result<std::shared_ptr<StreamConnection>> make_connection(asio::any_io_executor executor,
                                                          const TlsContext& context,
                                                          base::UniqueFd fd,
                                                          ConnectionLimits limits) {
  // Small frames answer each other, so waiting to fill a segment would cost a round trip.
  int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  asio::posix::stream_descriptor descriptor(executor);
  boost::system::error_code ec;
  descriptor.assign(fd.get(), ec);
  if (ec) return base::fail(ec, "cannot adopt the socket");
  std::string peer = remote_of(fd.get());
  auto stream = std::make_unique<TlsStream>(context, fd.release());
  return std::make_shared<StreamConnection>(std::move(descriptor), std::move(stream),
                                            std::move(peer), limits);
}

using Endpoints = std::vector<tcp::endpoint>;

asio::awaitable<Result<Endpoints>> look_up(TcpEndpoint where) {
  auto executor = co_await asio::this_coro::executor;
  tcp::resolver resolver(executor);
  const std::string port = std::to_string(where.port);
  auto [ec, found] = co_await resolver.async_resolve(where.host, port, kNoThrow);
  if (ec) co_return Error(ec);
  Endpoints endpoints;
  for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  co_return endpoints;
}

// Addresses are used without a lookup. Names are looked up by Asio's thread, which starts at the
// first lookup.
asio::awaitable<Result<Endpoints>> resolve(TcpEndpoint where, base::Duration deadline) {
  boost::system::error_code ec;
  auto address = asio::ip::make_address(where.host, ec);
  if (!ec) {
    Endpoints endpoints;
    endpoints.emplace_back(address, where.port);
    co_return endpoints;
  }
  base::SteadyClock clock;
  auto endpoints = co_await base::with_timeout(clock, deadline, look_up(where));
  if (!endpoints) co_return endpoints.error().with_context("cannot look up {}", where.host);
  co_return endpoints;
}

asio::awaitable<Result<base::UniqueFd>> connect_one(tcp::endpoint endpoint) {
  auto executor = co_await asio::this_coro::executor;
  tcp::socket socket(executor);
  auto [ec] = co_await socket.async_connect(endpoint, kNoThrow);
  if (ec) co_return Error(ec);
  co_return base::UniqueFd(socket.release());
}

asio::awaitable<Result<base::UniqueFd>> connect_first(Endpoints endpoints,
                                                      base::Duration deadline) {
  base::SteadyClock clock;
  base::Error last = base::fail(base::Errc::NotFound, "no address");
  for (const auto& endpoint : endpoints) {
    auto fd = co_await base::with_timeout(clock, deadline, connect_one(endpoint));
    if (fd) co_return fd;
    last = fd.error().with_context("cannot connect to {}", address_text(endpoint));
  }
  co_return last;
}

}  // namespace

Result<TcpEndpoint> parse_endpoint(std::string_view text) {
  auto colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return base::fail(base::Errc::Malformed, "'{}' is not HOST:PORT", text);
  }
  std::string_view host = text.substr(0, colon);
  auto port = base::parse_number<std::uint16_t>(text.substr(colon + 1));
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return base::fail(base::Errc::Malformed, "'{}': an IPv6 address needs [brackets]", text);
  }
  if (!port || host.empty())
    return base::fail(base::Errc::Malformed, "'{}' is not HOST:PORT", text);
  return TcpEndpoint{std::string(host), *port};
}

std::string format_endpoint(const TcpEndpoint& endpoint) {
  bool is_v6 = endpoint.host.find(':') != std::string::npos;
  if (is_v6) return fmt::format("[{}]:{}", endpoint.host, endpoint.port);
  return fmt::format("{}:{}", endpoint.host, endpoint.port);
}

TcpListener::TcpListener(tcp::acceptor acceptor, std::uint16_t port)
    : acceptor_(std::move(acceptor)), port_(port) {}

Result<TcpListener> TcpListener::open(asio::any_io_executor executor, const TcpEndpoint& where) {
  boost::system::error_code ec;
  auto address = asio::ip::make_address(where.host, ec);
  if (ec) return base::fail(ec, "cannot listen on {}: not an address", format_endpoint(where));
  tcp::endpoint endpoint(address, where.port);
  tcp::acceptor acceptor(executor);
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(asio::socket_base::reuse_address(true), ec);
  // "::" accepts IPv4 too, regardless of the sysctl net.ipv6.bindv6only.
  const bool is_any_v6 = address.is_v6() && address.is_unspecified();
  const int off = 0;
  if (!ec && is_any_v6 &&
      setsockopt(acceptor.native_handle(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0) {
    ec.assign(errno, boost::system::system_category());
  }
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(kBacklog, ec);
  if (ec) return base::fail(ec, "cannot listen on {}", format_endpoint(where));
  std::uint16_t port = acceptor.local_endpoint(ec).port();
  if (ec) return base::fail(ec, "cannot listen on {}", format_endpoint(where));
  return TcpListener(std::move(acceptor), port);
}

asio::awaitable<Result<base::UniqueFd>> TcpListener::accept() {
  return accept_descriptor(acceptor_);
}

void TcpListener::close() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
}

asio::awaitable<Result<TlsPeer>> tls_accept(const TlsContext& context, base::UniqueFd fd,
                                            base::Duration deadline, ConnectionLimits limits) {
  auto executor = co_await asio::this_coro::executor;
  auto made = make_connection(executor, context, std::move(fd), limits);
  if (!made) co_return made.error();
  auto connection = *made;
  auto proven = co_await connection->handshake(deadline);
  if (!proven) co_return proven.error().with_context("cannot complete the TLS handshake");
  TlsPeer peer;
  peer.name = static_cast<TlsStream&>(connection->stream()).peer_name();
  if (peer.name.empty()) co_return base::fail(WireErrc::BadPeer, "{}", connection->peer());
  connection->set_peer(peer.name + " " + connection->peer());
  peer.connection = std::move(connection);
  co_return peer;
}

asio::awaitable<Result<TlsPeer>> tls_connect(const TlsContext& context, TcpEndpoint where,
                                             base::Duration deadline, ConnectionLimits limits) {
  auto executor = co_await asio::this_coro::executor;
  auto endpoints = co_await resolve(where, deadline);
  if (!endpoints) co_return endpoints.error();
  auto fd = co_await connect_first(*endpoints, deadline);
  if (!fd) co_return fd.error();
  auto made = make_connection(executor, context, std::move(*fd), limits);
  if (!made) co_return made.error();
  TlsPeer peer;
  auto connection = *made;
  auto proven = co_await connection->handshake(deadline);
  if (!proven) co_return proven.error().with_context("cannot complete the TLS handshake");
  peer.connection = std::move(connection);
  co_return peer;
}

}  // namespace score::proto
