#pragma once
// What the server knows of a connection: how to run and how to end it. Keeps Beast out of the rest.

#include "base/async/asio_generic.hpp"

#include <cstdint>
#include <memory>

namespace score::monitor {

class HttpServer;

// How a connection came in.
enum class HttpDoor : std::uint8_t {
  Open,   // who it is, only the request can say
  Proxy,  // from the trusted proxy: X-Remote-User is believed
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
};

// `server` outlives it.
[[nodiscard]] std::shared_ptr<HttpConnection> make_connection(
    HttpServer& server, asio::generic::stream_protocol::socket socket, HttpDoor door);

}  // namespace score::monitor
