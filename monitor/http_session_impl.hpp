// The code of HttpSession; see http_session.hpp.
#pragma once

namespace score::monitor {

template <class Stream>
asio::awaitable<void> HttpSession<Stream>::run() {
  const auto self = this->shared_from_this();
  for (;;) {
    const bool goes_on = co_await serve_one();
    if (!goes_on) break;
  }
  leave();
  co_await hang_up();
}

// What the peer still sends is read for a moment: closed at once, its kernel would throw our last
// answer away.
template <class Stream>
asio::awaitable<void> HttpSession<Stream>::hang_up() {
  beast::error_code ignored;
  lowest().socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  std::array<char, 4'096> rest;
  lowest().expires_after(std::chrono::seconds(1));
  for (std::size_t left = 4 * kMaxBodyBytes; left > 0;) {
    const auto into = asio::buffer(rest);
    auto [failed, got] = co_await lowest().async_read_some(into, kNoThrow);
    if (failed) break;
    left -= std::min(left, got);
  }
  lowest().close();
}

template <class Stream>
void HttpSession<Stream>::close() {
  reason_ = websocket::close_reason(websocket::close_code::going_away);
  mailbox_.close();
  if (!socket_) lowest().cancel();
}

template <class Stream>
void HttpSession<Stream>::leave() {
  mailbox_.close();
  if (viewer_) server_.parts_.site.leave(*viewer_);
  viewer_.reset();
}

// One request and its answer; false: the connection is of no more use.
template <class Stream>
asio::awaitable<bool> HttpSession<Stream>::serve_one() {
  http::request_parser<http::string_body> parser;
  parser.header_limit(kMaxHeaderBytes);
  parser.body_limit(kMaxBodyBytes);
  lowest().expires_after(has_answered_ ? kKeepAliveTime : kHeaderTime);
  auto [failed, got] = co_await http::async_read_header(stream_, buffer_, parser, kNoThrow);
  if (!failed && parser.get()[http::field::expect] == "100-continue") {
    http::response<http::empty_body> go_on(http::status::continue_, 11);
    auto [unsent, bytes] = co_await http::async_write(stream_, go_on, kNoThrow);
    failed = unsent;
  }
  if (!failed) {
    lowest().expires_after(kHeaderTime);
    auto [broken, bytes] = co_await http::async_read(stream_, buffer_, parser, kNoThrow);
    failed = broken;
  }
  if (failed) {
    const int status = status_of(failed, !parser.get().target().empty());
    if (status == 0 || (status == 408 && buffer_.size() == 0 && got == 0)) co_return false;
    const Refusal refusal{status, "the request cannot be read", {}};
    server_.count("-", status, Duration(0));
    Response refused = make_refusal(refusal);
    co_await send(std::move(refused), false);
    co_return false;
  }
  has_answered_ = true;
  auto message = parser.release();
  const bool goes_on = co_await answer(std::move(message));
  co_return goes_on;
}

template <class Stream>
asio::awaitable<bool> HttpSession<Stream>::answer(http::request<http::string_body> message) {
  const TimePoint begun = server_.parts_.clock.now();
  const Request request = request_of(message);
  const bool keep_alive = message.keep_alive() && !server_.is_closing_;
  auto routed = route(request, server_.rules_, server_.parts_.logins, begun);
  if (message.target().size() > kMaxTargetBytes) routed = Refusal{414, "the target is long", {}};
  if (!server_.requests_allowed_.try_take(begun)) routed = Refusal{429, "too many requests", {}};
  const auto* may = std::get_if<Routed>(&routed);
  if (may != nullptr && server_.options_.only_metrics && may->endpoint != Endpoint::Metrics) {
    routed = Refusal{404, "only /metrics", {}};
    may = nullptr;
  }
  if (may != nullptr && may->endpoint == Endpoint::WebSocket) {
    Routed wanted = *may;
    co_await serve_socket(std::move(wanted), std::move(message));
    co_return false;
  }
  if (may != nullptr && may->endpoint == Endpoint::Stream) {
    Routed wanted = *may;
    co_await stream_documents(std::move(wanted));
    co_return false;
  }
  Response response;
  if (may == nullptr) {
    response = make_refusal(std::get<Refusal>(routed));
  } else {
    Routed wanted = *may;
    Request asked = request;
    response = co_await respond(std::move(wanted), std::move(asked));
  }
  const bool is_head = message.method() == http::verb::head;
  response.prepare_payload();
  if (is_head) response.body().clear();
  server_.count(std::string(message.method_string()), static_cast<int>(response.result_int()),
                server_.parts_.clock.now() - begun);
  const bool is_sent = co_await send(std::move(response), keep_alive);
  co_return is_sent&& keep_alive;
}

template <class Stream>
asio::awaitable<bool> HttpSession<Stream>::send(Response response, bool keep_alive) {
  response.keep_alive(keep_alive);
  if (!response.has_content_length()) response.prepare_payload();
  lowest().expires_after(kWriteTime);
  http::response_serializer<http::string_body> serializer(response);
  auto [failed, bytes] = co_await http::async_write(stream_, serializer, kNoThrow);
  co_return !failed;
}

template <class Stream>
asio::awaitable<Response> HttpSession<Stream>::respond(Routed routed, Request request) {
  switch (routed.endpoint) {
    case Endpoint::Snapshot:
      co_return snapshot(routed);
    case Endpoint::Session:
      co_return make_response(200, "application/json",
                              server_.parts_.site.session_document(routed.session));
    case Endpoint::Trace: {
      Response found = co_await trace(std::move(routed));
      co_return found;
    }
    case Endpoint::Metrics: {
      std::string text = co_await server_.parts_.site.metrics();
      co_return make_response(200, "text/plain; version=0.0.4; charset=utf-8", std::move(text));
    }
    case Endpoint::Login:
      co_return login(routed);
    case Endpoint::Admin:
      co_return act(routed, request);
    default:
      co_return page(routed, request.if_none_match);
  }
}

template <class Stream>
Response HttpSession<Stream>::page(const Routed& routed, std::string_view if_none_match) {
  const PageFile* file = server_.pages_.find(routed.target.path);
  if (file == nullptr) return make_refusal({404, "no such path", {}});
  const bool is_same = !if_none_match.empty() && if_none_match == file->etag;
  Response response = make_response(is_same ? 304 : 200, file->type, is_same ? "" : file->bytes);
  response.set(http::field::etag, file->etag);
  response.set(http::field::cache_control, "no-cache");
  return response;
}

template <class Stream>
Response HttpSession<Stream>::login(const Routed& routed) {
  const TimePoint now = server_.parts_.clock.now();
  if (!server_.logins_allowed_.try_take(now)) return make_refusal({429, "too many logins", {}});
  std::string token;
  for (const auto& [name, value] : routed.target.query) {
    if (name == "token") token = value;
  }
  const auto session = server_.parts_.logins.redeem(token, now);
  if (!session) return make_refusal({401, session.error().context(), {}});
  Response response = make_response(302, "text/plain", "");
  response.set(http::field::location, "/");
  const bool is_tls = server_.rules_.scheme == "https";
  response.set(http::field::set_cookie, server_.rules_.cookie_name + "=" + session->cookie +
                                            "; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200" +
                                            (is_tls ? "; Secure" : ""));
  return response;
}

template <class Stream>
Response HttpSession<Stream>::act(const Routed& routed, const Request& request) {
  const std::string& path = routed.target.path;
  const auto action =
      parse_action(std::string_view(path).substr(path.rfind('/') + 1), request.body);
  if (!action)
    return make_response(status_of(action.error()), "application/json",
                         error_body(action.error().message()));
  if (action->kind == ActionKind::Logout) {
    server_.parts_.logins.end(routed.session->cookie);
    return make_response(200, "application/json", "{\"ok\":true,\"text\":\"logged out\"}\n");
  }
  const auto done = server_.parts_.site.act(routed.session->who, *action);
  if (!done) {
    return make_response(status_of(done.error()), "application/json",
                         error_body(done.error().message()));
  }
  JsonWriter json(JsonWriter::Layout::Line);
  json.begin_object().field("ok", true).field("text", *done).end_object();
  return make_response(200, "application/json", json.take() + "\n");
}

template <class Stream>
Result<ViewerOptions> HttpSession<Stream>::options_of(const Routed& routed,
                                                      std::uint32_t ticks) const {
  ViewerOptions options;
  options.ticks = ticks;
  return read_query(routed.target.query, options);
}

template <class Stream>
Response HttpSession<Stream>::snapshot(const Routed& routed) {
  for (const auto& [name, value] : routed.target.query) {
    if (name == "rate" || name == "count")
      return make_refusal({400, name + ": only of a stream", {}});
  }
  const auto options = options_of(routed, 1);
  if (!options) return make_refusal({400, options.error().message(), {}});
  const Frame frame = server_.parts_.site.snapshot(options->filter, sight_of(routed));
  return make_response(200, "application/json", *frame);
}

template <class Stream>
asio::awaitable<Response> HttpSession<Stream>::trace(Routed routed) {
  Site::TraceWish wish;
  for (const auto& [name, value] : routed.target.query) {
    const auto number = parse_number<std::uint64_t>(value);
    const bool is_sound =
        number && (name == "late" || (name == "seconds" && *number >= 1 && *number <= 60));
    if (!is_sound) co_return make_refusal({400, name, {}});
    if (name == "late") wish.late = *number;
    if (name == "seconds") wish.since = std::chrono::seconds(*number);
  }
  auto found = co_await server_.parts_.site.trace(wish);
  if (!found) {
    co_return make_response(status_of(found.error()), "application/json",
                            error_body(found.error().message()));
  }
  co_return make_response(200, "application/json", *std::move(found));
}

// ---- streams ------------------------------------------------------------------------------------

template <class Stream>
Result<void> HttpSession<Stream>::join(const ViewerOptions& options, const Routed& routed) {
  const std::weak_ptr<HttpSession> weak = this->weak_from_this();
  auto joined = server_.parts_.site.join(options, sight_of(routed), [weak](Frame frame) {
    const auto self = weak.lock();
    return self == nullptr || self->mailbox_.put(std::move(frame));
  });
  if (!joined) return joined.error();
  viewer_ = *joined;
  return {};
}

template <class Stream>
asio::awaitable<void> HttpSession<Stream>::stream_documents(Routed routed) {
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
  lowest().expires_after(kWriteTime);
  auto [failed, bytes] = co_await http::async_write_header(stream_, serializer, kNoThrow);
  std::uint64_t left = options->count.value_or(0);
  while (!failed) {
    lowest().expires_never();
    const Frame frame = co_await mailbox_.take();
    if (!frame) break;
    const std::array<asio::const_buffer, 2> line = {asio::buffer(*frame), asio::buffer("\n", 1)};
    lowest().expires_after(kWriteTime);
    const auto chunk = http::make_chunk(line);
    auto [broken, sent] = co_await asio::async_write(stream_, chunk, kNoThrow);
    failed = broken;
    if (left > 0 && --left == 0) break;
  }
  if (failed) co_return;
  const auto last = http::make_chunk_last();
  co_await asio::async_write(stream_, last, kNoThrow);
}

template <class Stream>
asio::awaitable<void> HttpSession<Stream>::serve_socket(Routed routed,
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
  lowest().expires_never();
  socket_ = std::make_shared<Socket>(stream_);
  const auto socket = socket_;
  socket->set_option(websocket::stream_base::timeout::suggested(beast::role_type::server));
  socket->read_message_max(kMaxMessageBytes);
  socket->auto_fragment(false);
  socket->text(true);
  auto [failed] = co_await socket->async_accept(message, kNoThrow);
  if (!failed) {
    std::string first = server_.parts_.site.session_document(routed.session);
    auto self = this->shared_from_this();
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

template <class Stream>
asio::awaitable<void> HttpSession<Stream>::write_socket(std::shared_ptr<Socket> socket,
                                                        std::string first) {
  const auto hello = asio::buffer(first);
  auto [failed, sent] = co_await socket->async_write(hello, kNoThrow);
  while (!failed) {
    const Frame frame = co_await mailbox_.take();
    if (!frame) break;
    const auto bytes = asio::buffer(*frame);
    auto [broken, count] = co_await socket->async_write(bytes, kNoThrow);
    failed = broken;
  }
  if (failed) co_return;
  const auto reason = reason_;
  co_await socket->async_close(reason, kNoThrow);
}

template <class Stream>
asio::awaitable<void> HttpSession<Stream>::read_socket(std::shared_ptr<Socket> socket,
                                                       ViewerOptions options) {
  beast::flat_buffer message;
  for (;;) {
    message.clear();
    auto [failed, got] = co_await socket->async_read(message, kNoThrow);
    if (failed) co_return;
    const auto data = message.data();
    const std::string_view text(static_cast<const char*>(data.data()), data.size());
    const auto wish = read_message(text, options);
    const Status changed = !socket->got_text() ? Status(fail(Errc::Malformed, "binary"))
                           : !wish             ? Status(wish.error())
                                   : server_.parts_.site.change(*viewer_, wish->options);
    if (!changed) {
      reason_ = websocket::close_reason(websocket::close_code::policy_error,
                                        changed.error().message().substr(0, 100));
      mailbox_.close();  // the writer says so
      continue;
    }
    options = wish->options;
    if (wish->pause) server_.parts_.site.pause(*viewer_, *wish->pause);
  }
}

}  // namespace score::monitor
