#pragma once
// One connection of the web server. A template over the stream, so that TLS and plain TCP are the
// same code; included by http_server.cpp alone, as Beast is expensive to compile.

#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "monitor/http_server.hpp"
#include "monitor/mailbox.hpp"

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace score::monitor {

namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;

inline constexpr std::size_t kMaxHeaderBytes = 16 * 1024;
inline constexpr std::size_t kMaxTargetBytes = 4 * 1024;
inline constexpr std::size_t kMaxBodyBytes = 64 * 1024;
inline constexpr std::size_t kMaxMessageBytes = 4 * 1024;
inline constexpr std::chrono::seconds kHeaderTime{5};
inline constexpr std::chrono::seconds kKeepAliveTime{30};
inline constexpr std::chrono::seconds kWriteTime{30};

using Response = http::response<http::string_body>;

// The parts of a parsed request that matter.
[[nodiscard]] Request request_of(const http::request<http::string_body>& message);
// What a request that could not be read is answered with; 0: nothing, close. `has_target`: its
// first line was read.
[[nodiscard]] int status_of(const beast::error_code& failed, bool has_target);
// With every header that all answers have.
[[nodiscard]] Response make_response(int status, std::string_view type, std::string body);
[[nodiscard]] Response make_refusal(const Refusal& refusal);
[[nodiscard]] std::string error_body(std::string_view text);
[[nodiscard]] int status_of(const Error& error);

template <class Stream>
class HttpSession : public std::enable_shared_from_this<HttpSession<Stream>> {
 public:
  HttpSession(HttpServer& server, Stream stream)
      : server_(server), stream_(std::move(stream)), mailbox_(stream_.get_executor()) {}

  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  ~HttpSession() { leave(); }

  asio::awaitable<void> run();
  void close();

 private:
  using Socket = websocket::stream<Stream&>;

  beast::tcp_stream& lowest() { return beast::get_lowest_layer(stream_); }

  asio::awaitable<bool> serve_one();
  asio::awaitable<void> hang_up();
  asio::awaitable<bool> answer(http::request<http::string_body> message);
  asio::awaitable<Response> respond(Routed routed, Request request);
  asio::awaitable<bool> send(Response response, bool keep_alive);
  Response page(const Routed& routed, std::string_view if_none_match);
  Response login(const Routed& routed);
  Response act(const Routed& routed, const Request& request);
  Response snapshot(const Routed& routed);
  asio::awaitable<Response> trace(Routed routed);
  asio::awaitable<void> stream_documents(Routed routed);
  asio::awaitable<void> serve_socket(Routed routed, http::request<http::string_body> message);
  asio::awaitable<void> read_socket(std::shared_ptr<Socket> socket, ViewerOptions options);
  asio::awaitable<void> write_socket(std::shared_ptr<Socket> socket, std::string first);
  Result<ViewerOptions> options_of(const Routed& routed, std::uint32_t ticks) const;
  Result<void> join(const ViewerOptions& options, const Routed& routed);
  void leave();

  Sight sight_of(const Routed& routed) {
    std::optional<WebUser> who;
    if (routed.session) who = routed.session->who;
    return server_.parts_.site.sight_of(who);
  }

  HttpServer& server_;
  Stream stream_;
  beast::flat_buffer buffer_;
  Mailbox mailbox_;
  std::optional<ViewerId> viewer_;
  std::shared_ptr<Socket> socket_;
  websocket::close_reason reason_;
  bool has_answered_ = false;
};

}  // namespace score::monitor

#include "monitor/http_session_impl.hpp"
