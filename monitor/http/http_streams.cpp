// Each viewer has a coroutine that waits for its mailbox: at most one document is being written,
// and one waits. Documents are shared, never copied.
#include "monitor/http/http_session.hpp"

#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/write.hpp>

#include <array>
#include <utility>

namespace score::monitor {

// ---- streams ------------------------------------------------------------------------------------

Result<void> HttpSession::join(const ViewerOptions& options, const Routed& routed) {
  const std::weak_ptr<HttpSession> weak = weak_from_this();
  auto take = [weak](Frame frame) {
    const auto self = weak.lock();
    return self == nullptr || self->mailbox_.put(std::move(frame));
  };
  auto joined =
      server_.parts_.site->join(asker_of(&routed), options, sight_of(routed), std::move(take));
  if (!joined) return joined.error();
  viewer_ = *joined;
  if (routed.session) login_ = Login{*routed.session, sight_of(routed)};
  return {};
}

// A logged-in user sees more than others, but only while the login and the rights last.
const char* HttpSession::why_over() const {
  if (!login_) return nullptr;
  const std::string& cookie = login_->session.cookie;
  if (!cookie.empty() && !server_.parts_.logins.find(cookie, server_.parts_.clock.now())) {
    return "the login ended";
  }
  const bool is_same = server_.parts_.site->sight_of(login_->session.who) == login_->sight;
  return is_same ? nullptr : "the rights changed";
}

asio::awaitable<void> HttpSession::stream_documents(Routed routed) {
  const auto options = options_of(routed, 10);
  Status joined = options ? join(*options, routed) : Status(options.error());
  server_.count("GET", joined ? 200 : status_of(joined.error()), Duration(0));
  if (!joined) {
    Response refused = make_response(status_of(joined.error()), "application/json",
                                     error_body(joined.error().message()));
    co_await send(std::move(refused), false);
    co_return;
  }
  Response head = make_response(200, "application/x-ndjson", "");
  head.erase(http::field::content_length);
  http::response<http::empty_body> header(head.base());
  header.chunked(true);
  header.keep_alive(false);
  http::response_serializer<http::empty_body> serializer(header);
  stream_.expires_after(kWriteTime);
  auto [failed, bytes] = co_await http::async_write_header(stream_, serializer, kNoThrow);
  std::uint64_t left = options->count.value_or(0);
  while (!failed) {
    stream_.expires_never();
    const Frame frame = co_await mailbox_.take();
    if (!frame || why_over() != nullptr) break;
    if (!server_.may_answer()) co_return;
    const std::array<asio::const_buffer, 2> line = {asio::buffer(*frame), asio::buffer("\n", 1)};
    stream_.expires_after(kWriteTime);
    const auto chunk = http::make_chunk(line);
    auto [broken, sent] = co_await asio::async_write(stream_, chunk, kNoThrow);
    failed = broken;
    if (left > 0 && --left == 0) break;
  }
  if (failed) co_return;
  const auto last = http::make_chunk_last();
  co_await asio::async_write(stream_, last, kNoThrow);
}

asio::awaitable<void> HttpSession::serve_socket(Routed routed,
                                                http::request<http::string_body> message) {
  const auto options = options_of(routed, 1);
  Status joined = options ? join(*options, routed) : Status(options.error());
  server_.count("GET", joined ? 101 : status_of(joined.error()), Duration(0));
  if (!joined) {
    Response refused = make_response(status_of(joined.error()), "application/json",
                                     error_body(joined.error().message()));
    co_await send(std::move(refused), false);
    co_return;
  }
  stream_.expires_never();
  socket_ = std::make_shared<Socket>(stream_);
  const auto socket = socket_;
  // A viewer that does not read does not answer pings either.
  auto times = websocket::stream_base::timeout::suggested(beast::role_type::server);
  times.idle_timeout = kWriteTime;
  socket->set_option(times);
  socket->read_message_max(kMaxMessageBytes);
  socket->auto_fragment(false);
  socket->text(true);
  auto [failed] = co_await socket->async_accept(message, kNoThrow);
  if (!failed) {
    std::string first = server_.parts_.site->session_document(routed.session);
    auto self = shared_from_this();
    auto writing = write_socket(socket, std::move(first));
    auto kept = [](std::shared_ptr<HttpSession> session,
                   asio::awaitable<void> work) -> asio::awaitable<void> {
      co_await std::move(work);
      session->mailbox_.close();
    };
    auto task = kept(std::move(self), std::move(writing));
    server_.parts_.tasks.spawn("serve client", std::move(task));
    ViewerOptions current = *options;
    co_await read_socket(socket, std::move(current));
  }
  leave();
}

asio::awaitable<void> HttpSession::write_socket(std::shared_ptr<Socket> socket, std::string first) {
  const auto hello = asio::buffer(first);
  auto [failed, sent] = co_await socket->async_write(hello, kNoThrow);
  while (!failed) {
    const Frame frame = co_await mailbox_.take();
    if (!frame) break;
    if (!server_.may_answer()) co_return;
    if (const char* why = why_over()) {
      reason_ = websocket::close_reason(websocket::close_code::policy_error, why);
      break;
    }
    const auto bytes = asio::buffer(*frame);
    auto [broken, count] = co_await socket->async_write(bytes, kNoThrow);
    failed = broken;
  }
  if (failed) co_return;
  const auto reason = reason_;
  co_await socket->async_close(reason, kNoThrow);
}

asio::awaitable<void> HttpSession::read_socket(std::shared_ptr<Socket> socket,
                                               ViewerOptions options) {
  beast::flat_buffer message;
  for (;;) {
    message.clear();
    auto [failed, got] = co_await socket->async_read(message, kNoThrow);
    if (failed) co_return;
    const auto data = message.data();
    const std::string_view text(static_cast<const char*>(data.data()), data.size());
    const auto request = read_message(text, options);
    const Status changed = !socket->got_text() ? Status(fail(Errc::Malformed, "binary"))
                           : !request          ? Status(request.error())
                                      : server_.parts_.site->change(*viewer_, request->options);
    if (!changed) {
      reason_ = websocket::close_reason(websocket::close_code::policy_error,
                                        changed.error().message().substr(0, 100));
      mailbox_.close();  // the writer sends the reason
      continue;
    }
    options = request->options;
    if (request->pause) server_.parts_.site->pause(*viewer_, *request->pause);
  }
}

}  // namespace score::monitor
