#pragma once
// The server's view of a connection: run and close. Keeps Beast out of other files.

#include "base/async/asio_generic.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace score::monitor {

class HttpServer;

// The listener that accepted a connection.
enum class HttpSource : std::uint8_t {
  Open,   // the request identifies the user
  Proxy,  // from the trusted proxy: X-Remote-User is believed
};

struct HttpOrigin {  // of a connection
  std::uint64_t id = 0;
  HttpSource source = HttpSource::Open;
  std::string peer;  // whose requests are counted together
};

class HttpConnection {
 public:
  HttpConnection() = default;
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;
  virtual ~HttpConnection() = default;

  // Serves requests until the peer or close() ends it. Once.
  virtual asio::awaitable<void> run() = 0;
  // The daemon stops: streams end at once, the others when they are idle.
  virtual void close() = 0;
  // At once: its place is needed.
  virtual void drop() = 0;
};

// `server` outlives it.
[[nodiscard]] std::shared_ptr<HttpConnection> make_connection(
    HttpServer& server, asio::generic::stream_protocol::socket socket, HttpOrigin origin);

}  // namespace score::monitor
