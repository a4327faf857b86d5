// Beast's HTTP and WebSocket code over a TLS stream takes the compiler more than a minute and two
// gigabytes, as much as all the rest of this folder. So this daemon speaks no TLS to browsers:
// whoever wants the dashboard off this host puts a proxy before the loopback address
// (docs/stream.md) and names it in [monitor] names. Asked for TLS, the daemon refuses to start.
#include "monitor/http_tls.hpp"

#include "monitor/http_server.hpp"

namespace score::monitor {

Result<std::unique_ptr<TlsFront>> load_tls(const std::string& certificate, const std::string&) {
  return fail(Errc::Unsupported,
              "monitor: {}: this build serves TLS through a proxy only; listen on loopback",
              certificate);
}

asio::awaitable<void> HttpServer::serve_tls(asio::ip::tcp::socket, std::uint64_t) {
  co_return;  // load_tls() let no TLS server start
}

}  // namespace score::monitor
