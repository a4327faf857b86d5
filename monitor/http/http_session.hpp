#pragma once
// HttpSession is one connection of the web server, over any byte stream: TCP, a Unix socket, or one
// end of a socket pair with TLS behind it (http_tls.cpp). Beast is expensive to compile, so only
// http_message, http_session and http_streams include it.

#include "monitor/http/http_connection.hpp"
#include "monitor/http/http_message.hpp"
#include "monitor/http/http_server.hpp"
#include "monitor/model/mailbox.hpp"

#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace score::monitor {

namespace websocket = beast::websocket;

inline constexpr std::chrono::seconds kHeaderTime{5};
inline constexpr std::chrono::seconds kKeepAliveTime{30};
inline constexpr std::chrono::seconds kWriteTime{30};

using Stream = beast::basic_stream<asio::generic::stream_protocol>;

class HttpSession final : public HttpConnection, public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(HttpServer& server, Stream stream, HttpOrigin origin)
      : server_(server),
        stream_(std::move(stream)),
        origin_(std::move(origin)),
        mailbox_(stream_.get_executor()) {}

  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  ~HttpSession() override { leave(); }

  asio::awaitable<void> run() override;
  void close() override;

  void drop() override { stream_.close(); }

 private:
  using Socket = websocket::stream<Stream&>;

  asio::awaitable<bool> serve_one();
  asio::awaitable<void> hang_up();
  asio::awaitable<bool> answer(http::request<http::string_body> message);
  // The arguments must outlive the task.
  asio::awaitable<std::variant<Routed, HttpError>> route_from(
      const http::request<http::string_body>& message, Request& request);
  asio::awaitable<void> identify(http::request<http::string_body>& message);
  asio::awaitable<Response> respond(Routed routed, Request request);
  asio::awaitable<Response> call(Routed routed, Request request);
  asio::awaitable<bool> send_in_pieces(Response response);
  asio::awaitable<bool> is_token_valid();
  [[nodiscard]] Response point_elsewhere(const Request& request, Endpoint endpoint) const;
  asio::awaitable<bool> send(Response response, bool keep_alive);
  Response page(const Routed& routed, std::string_view if_none_match);
  Response login(const Request& request);
  // Returns whose budget and viewers count: the logged-in user, or the address without a login.
  [[nodiscard]] std::string asker_of(const Routed* routed) const;
  asio::awaitable<Response> act(Routed routed, Request request);
  Response snapshot(const Routed& routed);
  asio::awaitable<Response> trace(Routed routed);
  Response history(const Routed& routed);
  asio::awaitable<void> stream_documents(Routed routed);
  asio::awaitable<void> serve_socket(Routed routed, http::request<http::string_body> message);
  asio::awaitable<void> read_socket(std::shared_ptr<Socket> socket, ViewerOptions options);
  asio::awaitable<void> write_socket(std::shared_ptr<Socket> socket, std::string first);
  Result<ViewerOptions> options_of(const Routed& routed, std::uint32_t ticks) const;
  Result<void> join(const ViewerOptions& options, const Routed& routed);
  void leave();
  // Returns the reason why the stream must end, or null if it may continue.
  [[nodiscard]] const char* why_over() const;

  Sight sight_of(const Routed& routed) {
    std::optional<WebUser> who;
    if (routed.session) who = routed.session->who;
    return server_.parts_.site->sight_of(who);
  }

  struct Login {
    WebSession session;
    Sight sight;
  };

  HttpServer& server_;
  Stream stream_;
  HttpOrigin origin_;
  beast::flat_buffer buffer_;
  Mailbox mailbox_;
  std::optional<ApiCaller> caller_;  // of the present request, if a token or the kernel names it
  std::string token_;                // personal token of the present request; empty: none
  std::function<asio::awaitable<std::optional<std::string>>()>
      next_piece_;  // of the present answer
  std::optional<ViewerId> viewer_;
  std::optional<Login> login_;  // the login with which its stream was opened
  std::shared_ptr<Socket> socket_;
  websocket::close_reason reason_;
  bool has_answered_ = false;
};

}  // namespace score::monitor
