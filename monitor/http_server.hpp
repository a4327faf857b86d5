#pragma once
// The web server: HTTP/1.1 and WebSockets on the io_context of its daemon. Decides nothing itself:
// the router says what a request may have, the site gives it.

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "base/task_group.hpp"
#include "base/token_bucket.hpp"
#include "monitor/page_files.hpp"
#include "monitor/router.hpp"
#include "monitor/samples.hpp"
#include "monitor/site.hpp"
#include "monitor/web_login.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace score::monitor {

struct TlsFront;

struct HttpAddress {
  std::string host = "127.0.0.1";  // an IP address
  std::uint16_t port = 0;          // 0: any
};

struct HttpOptions {
  HttpAddress listen;
  std::vector<std::string> names;  // further names in Host, with port if it is not the scheme's own
  std::string token;               // bearer; empty: none
  std::string certificate, key;    // PEM files; both: TLS
  bool only_metrics = false;       // a node's: no page, no stream, nothing else
};

class HttpServer {
 public:
  // All outlive it.
  struct Parts {
    asio::io_context& io;
    Clock& clock;
    TaskGroup& tasks;
    Site& site;
    WebLogin& logins;
  };

  HttpServer(Parts parts, HttpOptions options, PageFiles pages);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  // Listens; serves from start() on. Errors name the address; Denied: off loopback without TLS and
  // token.
  [[nodiscard]] Status open();
  void start();
  // No more is let in; who is inside goes soon.
  void close();

  // After open(): "http://127.0.0.1:4711/".
  [[nodiscard]] std::string url() const;

  [[nodiscard]] std::uint16_t port() const;

  // Requests answered so far, by method and status code; for metrics.
  struct Count {
    std::uint64_t requests = 0;
    TimeHistogram times;
  };

  using Counts = std::map<std::pair<std::string, int>, Count>;

  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  template <class Stream>
  friend class HttpSession;
  struct Listener;

  asio::awaitable<void> accept();
  asio::awaitable<void> serve(asio::ip::tcp::socket socket);
  asio::awaitable<void> serve_tls(asio::ip::tcp::socket socket, std::uint64_t id);  // http_tls.cpp
  void count(const std::string& method, int status, Duration time);

  Parts parts_;
  HttpOptions options_;
  PageFiles pages_;
  DoorRules rules_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<TlsFront> tls_;  // null: plain HTTP
  std::size_t connections_ = 0;
  std::map<std::uint64_t, std::function<void()>> closers_;  // of who is inside
  std::uint64_t last_id_ = 0;
  bool is_closing_ = false;
  TokenBucket logins_allowed_{5, 20};
  TokenBucket requests_allowed_{500, 2'000};
  LogLimiter limiter_;
  Counts counts_;
};

// Is it an address of this host alone?
[[nodiscard]] bool is_loopback(const std::string& host);

}  // namespace score::monitor
