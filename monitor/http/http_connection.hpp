#pragma once
// This is the server's view of a connection: run and close. It keeps Beast out of other files.

#include "base/async/asio_generic.hpp"
#include "base/ids.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace score::monitor {

class HttpServer;

// HttpSource is the listener that accepted a connection.
enum class HttpSource : std::uint8_t {
  Open,   // the request identifies the user
  Proxy,  // from the trusted proxy: X-Remote-User is trusted
  Local,  // from the socket for programs: the kernel names the user
};

struct HttpOrigin {  // of a connection
  std::uint64_t id = 0;
  HttpSource source = HttpSource::Open;
  std::string peer;  // key under which its requests are counted
  UserId user{};     // of a Local one
};

class HttpConnection {
 public:
  HttpConnection() = default;
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;
  virtual ~HttpConnection() = default;

  // Serves requests until the peer or close() ends it. It must be called only once.
  virtual asio::awaitable<void> run() = 0;
  // Ends the connection because the daemon stops: streams end at once, other connections when they
  // are idle.
  virtual void close() = 0;
  // Ends the connection at once, because its place is needed.
  virtual void drop() = 0;
};

// Makes a connection. `server` must outlive it.
[[nodiscard]] std::shared_ptr<HttpConnection> make_connection(
    HttpServer& server, asio::generic::stream_protocol::socket socket, HttpOrigin origin);

}  // namespace score::monitor
