#pragma once
// HttpServer is the web server: HTTP/1.1 and WebSockets on the io_context of its daemon. It makes
// no decisions itself: the router checks the request, and the site answers it.

#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "base/async/token_bucket.hpp"
#include "base/os/log.hpp"
#include "base/result.hpp"
#include "monitor/http/api.hpp"
#include "monitor/http/connection_limiter.hpp"
#include "monitor/http/http_connection.hpp"
#include "monitor/http/http_tls.hpp"
#include "monitor/http/page_files.hpp"
#include "monitor/http/router.hpp"
#include "monitor/http/site.hpp"
#include "monitor/http/web_login.hpp"
#include "monitor/sampler/samples.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace score::monitor {

// ProxySocket is a Unix socket for a reverse proxy that names the user in X-Remote-User.
struct ProxySocket {
  std::string path;
  UserId user;  // only this user's processes may connect
};

struct HttpOptions {
  std::string host = "127.0.0.1";  // an IP address
  std::vector<std::string>
      names;               // further names in Host, with port unless it is the scheme's default
  std::string public_url;  // "https://name:port", the address at a proxy; empty: none
  std::optional<ProxySocket> proxy;
  bool has_api = false;          // the TCP listener serves the API for programs, too
  std::string api_socket;        // path of a Unix socket for programs; empty: none
  std::string token;             // bearer; empty: none
  std::string certificate, key;  // PEM files; both: TLS
};

class HttpServer {
 public:
  using Socket = asio::generic::stream_protocol::socket;

  // All of these must outlive the server.
  struct Parts {
    asio::io_context& io;
    Clock& clock;
    TaskGroup& tasks;
    WebLogin& logins;
    MetricsSource& metrics;
    Site* site;                              // null: only /metrics, neither page nor stream
    std::function<Elsewhere()> elsewhere{};  // without a site: the answer to other requests
    Api* api = nullptr;                      // null: no API for programs
    // Is asked for each request and for all that is sent; false closes the connection. A head that
    // is not in charge any more does not answer. Empty: always.
    std::function<bool()> may_answer{};
  };

  HttpServer(Parts parts, HttpOptions options, PageFiles pages);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  // Opens the listeners; requests are served from start() on. Port 0 means any port. Errors name
  // the address; Denied: not a loopback address, without TLS and token. After an error it may be
  // called again with a different port.
  [[nodiscard]] Status open(std::uint16_t port);
  void start();
  // Stops accepting connections. Open connections end soon.
  void close();

  // Returns "http://127.0.0.1:4711/", or the public address. Call it after open().
  [[nodiscard]] std::string url() const;

  [[nodiscard]] std::uint16_t port() const;

  // Count holds the requests answered so far, by method and status code, for metrics.
  struct Count {
    std::uint64_t requests = 0;
    TimeHistogram times;
  };

  using Counts = std::map<std::pair<std::string, int>, Count>;

  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  friend class HttpSession;
  struct Listener;

  [[nodiscard]] Status listen(const asio::ip::tcp::endpoint& endpoint);
  [[nodiscard]] Status listen_for_proxy();
  [[nodiscard]] Status listen_for_programs();
  void set_rules(bool is_local, const std::string& shown);
  asio::awaitable<void> accept();
  asio::awaitable<void> accept_proxy();
  asio::awaitable<void> accept_programs();
  // Returns the id of a connection that may enter. A different connection may be closed to make
  // room.
  std::optional<std::uint64_t> let_in(const std::string& peer);
  void forget(std::uint64_t id);

  [[nodiscard]] bool may_answer() const { return !parts_.may_answer || parts_.may_answer(); }

  asio::awaitable<void> serve(Socket socket, HttpOrigin origin);
  asio::awaitable<void> serve_tls(asio::ip::tcp::socket socket, HttpOrigin origin);
  void count(const std::string& method, int status, Duration time);

  Parts parts_;
  HttpOptions options_;
  PageFiles pages_;
  AccessRules rules_;
  std::unique_ptr<Listener> listener_;
  TlsFrontPtr tls_;  // null: plain HTTP
  ConnectionLimiter connection_limiter_;

  struct Exits {                  // of an open connection
    std::function<void()> close;  // orderly
    std::function<void()> drop;
  };

  std::map<std::uint64_t, Exits> exits_;
  std::uint64_t last_id_ = 0;
  bool is_closing_ = false;
  TokenBucket guesses_allowed_{5, 20};
  LogLimiter limiter_;
  Counts counts_;
};

// Returns true if the address is a loopback address.
[[nodiscard]] bool is_loopback(const std::string& host);

}  // namespace score::monitor
