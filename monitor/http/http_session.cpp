// Boost.Beast provides HTTP. A request is read completely (headers 16 KiB, body 64 KiB, 5 s) and
// reduced to the few fields that we use. The router, which is pure, checks it. Only then is it
// carried out.
#include "monitor/http/http_session.hpp"

#include "base/text.hpp"
#include "base/text/json_writer.hpp"

#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace score::monitor {

std::shared_ptr<HttpConnection> make_connection(HttpServer& server,
                                                asio::generic::stream_protocol::socket socket,
                                                HttpOrigin origin) {
  return std::make_shared<HttpSession>(server, Stream(std::move(socket)), std::move(origin));
}

asio::awaitable<void> HttpSession::run() {
  const auto self = shared_from_this();
  for (;;) {
    const bool goes_on = co_await serve_one();
    if (!goes_on) break;
  }
  leave();
  co_await hang_up();
}

// Reads the rest of the peer's data for a moment. If we closed at once, the peer's kernel would
// discard our last answer.
asio::awaitable<void> HttpSession::hang_up() {
  beast::error_code ignored;
  stream_.socket().shutdown(asio::socket_base::shutdown_send, ignored);
  std::array<char, 4'096> rest;
  stream_.expires_after(std::chrono::seconds(1));
  for (std::size_t left = 2 * kMaxCallBytes; left > 0;) {
    const auto into = asio::buffer(rest);
    auto [failed, got] = co_await stream_.async_read_some(into, kNoThrow);
    if (failed) break;
    left -= std::min(left, got);
  }
  stream_.close();
}

void HttpSession::close() {
  reason_ = websocket::close_reason(websocket::close_code::going_away);
  mailbox_.close();
  if (!socket_) stream_.cancel();
}

void HttpSession::leave() {
  mailbox_.close();
  if (viewer_) server_.parts_.site->leave(*viewer_);
  viewer_.reset();
}

// Serves one request. Returns false if the connection must be closed.
asio::awaitable<bool> HttpSession::serve_one() {
  http::request_parser<http::string_body> parser;
  parser.header_limit(kMaxHeaderBytes);
  parser.body_limit(kMaxCallBytes);
  stream_.expires_after(has_answered_ ? kKeepAliveTime : kHeaderTime);
  auto [failed, got] = co_await http::async_read_header(stream_, buffer_, parser, kNoThrow);
  if (!failed) {
    co_await identify(parser.get());
    if (!caller_) parser.body_limit(kMaxBodyBytes);
    if (!caller_ && parser.content_length().value_or(0) > kMaxBodyBytes) {
      failed = http::error::body_limit;
    }
  }
  if (!failed && parser.get()[http::field::expect] == "100-continue") {
    http::response<http::empty_body> go_on(http::status::continue_, 11);
    auto [unsent, bytes] = co_await http::async_write(stream_, go_on, kNoThrow);
    failed = unsent;
  }
  if (!failed) {
    stream_.expires_after(kHeaderTime);
    auto [broken, bytes] = co_await http::async_read(stream_, buffer_, parser, kNoThrow);
    failed = broken;
  }
  if (failed) {
    const int status = status_of(failed, !parser.get().target().empty());
    if (status == 0 || (status == 408 && buffer_.size() == 0 && got == 0)) co_return false;
    const HttpError refusal{status, "the request cannot be read", {}, caller_.has_value()};
    server_.count("-", status, Duration(0));
    Response refused = make_refusal(refusal);
    co_await send(std::move(refused), false);
    co_return false;
  }
  if (!server_.may_answer()) co_return false;
  has_answered_ = true;
  server_.connection_limiter_.request_arrived(origin_.id);
  auto message = parser.release();
  const bool goes_on = co_await answer(std::move(message));
  server_.connection_limiter_.answered(origin_.id);
  co_return goes_on;
}

// Finds out for whom a program asks, from the kernel or from its personal token. Callers that are
// not known may send short bodies only.
asio::awaitable<void> HttpSession::identify(http::request<http::string_body>& message) {
  caller_.reset();
  token_.clear();
  Api* const api = server_.parts_.api;
  if (api == nullptr) co_return;
  if (origin_.source == HttpSource::Local) {
    caller_ = co_await api->caller_of(origin_.user);
    co_return;
  }
  if (!server_.rules_.has_api || message.count(http::field::authorization) != 1) co_return;
  std::string token(bearer_token(message[http::field::authorization]));
  if (token.empty() || !is_api_path(message.target().substr(0, message.target().find('?')))) {
    co_return;
  }
  token_ = token;
  caller_ = co_await api->caller_with(std::move(token));
}

namespace {

// Returns the approximate cost for this thread of an answer that took this long. An answer that
// waits for nodes, or for the head's log, takes longer than it costs; the session that carries out
// a request of a program charges its user, too.
Duration cost_of(Endpoint endpoint, Duration took) {
  constexpr Duration kWaitForNodes = 10ms;
  constexpr Duration kCall = 500us;
  if (endpoint == Endpoint::Api) return kCall;
  const bool waits = endpoint == Endpoint::Trace || endpoint == Endpoint::Metrics;
  return waits ? kWaitForNodes : took;
}

}  // namespace

std::string HttpSession::asker_of(const Routed* routed) const {
  if (routed != nullptr && routed->caller) {
    return fmt::format("user {}", routed->caller->who.user);
  }
  if (routed == nullptr || !routed->session) return origin_.peer;
  return fmt::format("user {}", routed->session->who.user);
}

asio::awaitable<bool> HttpSession::answer(http::request<http::string_body> message) {
  const TimePoint begun = server_.parts_.clock.now();
  Request request = request_of(message);
  const bool keep_alive = message.keep_alive() && !server_.is_closing_;
  auto routed = co_await route_from(message, request);
  if (message.target().size() > kMaxTargetBytes) routed = HttpError{414, "the target is long", {}};
  const std::string asker = asker_of(std::get_if<Routed>(&routed));
  if (!server_.connection_limiter_.may_ask(asker, begun))
    routed = HttpError{429, "too many requests", {}, caller_.has_value()};
  const auto* may = std::get_if<Routed>(&routed);
  next_piece_ = nullptr;
  const bool is_here =
      may != nullptr && (server_.parts_.site != nullptr || may->endpoint == Endpoint::Metrics);
  if (is_here && may->endpoint == Endpoint::WebSocket) {
    Routed wanted = *may;
    co_await serve_socket(std::move(wanted), std::move(message));
    co_return false;
  }
  if (is_here && may->endpoint == Endpoint::Stream) {
    Routed wanted = *may;
    co_await stream_documents(std::move(wanted));
    co_return false;
  }
  Response response;
  if (may == nullptr) {
    response = make_refusal(std::get<HttpError>(routed));
  } else if (!is_here) {
    response = point_elsewhere(request, may->endpoint);
  } else {
    Routed wanted = *may;
    Request asked = request;
    const Endpoint endpoint = may->endpoint;
    response = co_await respond(std::move(wanted), std::move(asked));
    const TimePoint now = server_.parts_.clock.now();
    server_.connection_limiter_.charge(asker, now, cost_of(endpoint, now - begun));
  }
  const bool is_head = message.method() == http::verb::head;
  if (next_piece_ && !is_head) {
    server_.count(std::string(message.method_string()), static_cast<int>(response.result_int()),
                  server_.parts_.clock.now() - begun);
    co_return co_await send_in_pieces(std::move(response));
  }
  response.prepare_payload();
  if (is_head) response.body().clear();
  server_.count(std::string(message.method_string()), static_cast<int>(response.result_int()),
                server_.parts_.clock.now() - begun);
  const bool is_sent = co_await send(std::move(response), keep_alive);
  co_return is_sent&& keep_alive;
}

// Answers a request to a daemon that has no site.
Response HttpSession::point_elsewhere(const Request& request, Endpoint endpoint) const {
  if (!server_.parts_.elsewhere) return make_refusal({404, "only /metrics", {}});
  return make_elsewhere(server_.parts_.elsewhere(), request, endpoint);
}

// Only the trusted proxy may name its user; from other peers the header is ignored.
asio::awaitable<std::variant<Routed, HttpError>> HttpSession::route_from(
    const http::request<http::string_body>& message, Request& request) {
  constexpr const char* kRemoteUser = "X-Remote-User";
  Site* site = server_.parts_.site;  // null: there are no rights to look up
  if (origin_.source == HttpSource::Proxy && site != nullptr && message.count(kRemoteUser) > 0) {
    if (message.count(kRemoteUser) == 1) {
      std::string name(message[kRemoteUser]);
      request.remote = co_await site->user_named(std::move(name));
    }
    if (!request.remote) co_return HttpError{403, "X-Remote-User names no account", {}};
  }
  request.caller = caller_;
  if (origin_.source == HttpSource::Local) co_return route_local(request);
  co_return route(request, server_.rules_, server_.parts_.logins, server_.parts_.clock.now());
}

asio::awaitable<bool> HttpSession::send(Response response, bool keep_alive) {
  if (!server_.may_answer()) co_return false;
  response.keep_alive(keep_alive);
  if (!response.has_content_length()) response.prepare_payload();
  stream_.expires_after(kWriteTime);
  http::response_serializer<http::string_body> serializer(response);
  auto [failed, bytes] = co_await http::async_write(stream_, serializer, kNoThrow);
  co_return !failed;
}

// Returns false if the token that opened a stream was revoked since.
asio::awaitable<bool> HttpSession::is_token_valid() {
  if (token_.empty()) co_return true;
  std::string token = token_;
  const auto caller = co_await server_.parts_.api->caller_with(std::move(token));
  co_return caller.has_value();
}

// Sends the body in chunks as the API makes them, then closes the connection: a reader that leaves
// early would otherwise block the next request.
asio::awaitable<bool> HttpSession::send_in_pieces(Response response) {
  http::response<http::empty_body> head(response.result(), 11);
  for (const auto& field : response) head.set(field.name_string(), field.value());
  head.chunked(true);
  head.keep_alive(false);
  http::response_serializer<http::empty_body> serializer(head);
  stream_.expires_after(kWriteTime);
  auto [unsent, bytes] = co_await http::async_write_header(stream_, serializer, kNoThrow);
  while (!unsent && server_.may_answer() && !server_.is_closing_) {
    const std::optional<std::string> piece = co_await next_piece_();
    const bool may_read = co_await is_token_valid();
    if (!piece || !may_read) break;
    if (piece->empty()) {
      stream_.expires_after(kWriteTime);
      static_cast<void>(co_await asio::async_write(stream_, http::make_chunk_last(), kNoThrow));
      break;
    }
    stream_.expires_after(kWriteTime);
    auto [lost, sent] =
        co_await asio::async_write(stream_, http::make_chunk(asio::buffer(*piece)), kNoThrow);
    if (lost) break;
  }
  next_piece_ = nullptr;
  co_return false;
}

// Answers a request of a program.
asio::awaitable<Response> HttpSession::call(Routed routed, Request request) {
  ApiCall call{.caller = *std::move(routed.caller),
               .method = routed.is_head ? "GET" : std::move(request.method),
               .target = std::move(routed.target),
               .body = std::move(request.body),
               .idempotency_key = std::move(request.idempotency_key),
               .if_match = std::move(request.if_match),
               .last_event_id = std::move(request.last_event_id)};
  ApiAnswer answer = co_await server_.parts_.api->answer(std::move(call));
  Response response = make_response(answer.status, answer.type, std::move(answer.body));
  if (!answer.location.empty()) response.set(http::field::location, answer.location);
  if (!answer.etag.empty()) response.set(http::field::etag, answer.etag);
  if (!answer.allow.empty()) response.set(http::field::allow, answer.allow);
  next_piece_ = std::move(answer.next);
  co_return response;
}

namespace {

constexpr const char* kLoginPage =
    "<!doctype html><html lang=en><meta charset=utf-8><title>Log in</title>"
    "<p id=said>Logging in needs JavaScript.</p><script src=/login.js></script></html>\n";
// The page also removes the token from the history.
constexpr const char* kLoginScript = R"(const said = document.getElementById('said');
const body = new URLSearchParams({ token: location.hash.slice(1) });
history.replaceState(null, '', '/login');
said.textContent = 'Logging in ...';
fetch('/login', { method: 'POST', body }).then(async (answer) => {
  if (answer.ok) return location.replace('/');
  said.textContent = (await answer.json()).error;
}, () => { said.textContent = 'The head does not answer.'; });
)";

}  // namespace

asio::awaitable<Response> HttpSession::respond(Routed routed, Request request) {
  switch (routed.endpoint) {
    case Endpoint::Snapshot:
      co_return snapshot(routed);
    case Endpoint::Session:
      co_return make_response(200, "application/json",
                              server_.parts_.site->session_document(routed.session));
    case Endpoint::Trace: {
      Response found = co_await trace(std::move(routed));
      co_return found;
    }
    case Endpoint::History:
      co_return history(routed);
    case Endpoint::Metrics: {
      std::string text = co_await server_.parts_.metrics.metrics();
      co_return make_response(200, "text/plain; version=0.0.4; charset=utf-8", std::move(text));
    }
    case Endpoint::Login:
      co_return login(request);
    case Endpoint::LoginPage:
      co_return make_response(200, "text/html; charset=utf-8", kLoginPage);
    case Endpoint::LoginScript:
      co_return make_response(200, "text/javascript; charset=utf-8", kLoginScript);
    case Endpoint::Api: {
      Response done = co_await call(std::move(routed), std::move(request));
      co_return done;
    }
    case Endpoint::Admin: {
      Response done = co_await act(std::move(routed), request);
      co_return done;
    }
    default:
      co_return page(routed, request.if_none_match);
  }
}

Response HttpSession::page(const Routed& routed, std::string_view if_none_match) {
  const PageFile* file = server_.pages_.find(routed.target.path);
  if (file == nullptr) return make_refusal({404, "no such path", {}});
  const bool is_same = !if_none_match.empty() && if_none_match == file->etag;
  Response response = make_response(is_same ? 304 : 200, file->type, is_same ? "" : file->bytes);
  response.set(http::field::etag, file->etag);
  response.set(http::field::cache_control, "no-cache");
  return response;
}

Response HttpSession::login(const Request& request) {
  const TimePoint now = server_.parts_.clock.now();
  const auto session = server_.parts_.logins.redeem(login_token(request.body), now);
  if (!session) {
    // Failed logins use up a separate budget, so users who are logged in are not affected.
    if (!server_.guesses_allowed_.try_take(now)) {
      return make_refusal({429, "too many failed logins", {}});
    }
    return make_refusal({401, session.error().context(), {}});
  }
  Response response = make_response(303, "text/plain", "");
  response.set(http::field::location, "/");
  response.set(http::field::set_cookie,
               login_cookie(session->cookie, request.host, server_.rules_));
  return response;
}

asio::awaitable<Response> HttpSession::act(Routed routed, Request request) {
  const std::string& path = routed.target.path;
  const auto action =
      parse_action(std::string_view(path).substr(path.rfind('/') + 1), request.body);
  if (!action)
    co_return make_response(status_of(action.error()), "application/json",
                            error_body(action.error().message()));
  if (action->kind == ActionKind::Logout) {
    server_.parts_.logins.end(routed.session->cookie);
    co_return make_response(200, "application/json", "{\"ok\":true,\"text\":\"logged out\"}\n");
  }
  const auto done = co_await server_.parts_.site->act(routed.session->who, *action);
  if (!done) {
    co_return make_response(status_of(done.error()), "application/json",
                            error_body(done.error().message()));
  }
  JsonWriter json(JsonWriter::Layout::Line);
  json.begin_object().field("ok", true).field("text", *done).end_object();
  co_return make_response(200, "application/json", json.take() + "\n");
}

Result<ViewerOptions> HttpSession::options_of(const Routed& routed, std::uint32_t ticks) const {
  ViewerOptions options;
  options.ticks = ticks;
  return read_query(routed.target.query, options);
}

Response HttpSession::snapshot(const Routed& routed) {
  for (const auto& [name, value] : routed.target.query) {
    if (name == "rate" || name == "count")
      return make_refusal({400, name + ": only allowed for a stream", {}});
  }
  const auto options = options_of(routed, 1);
  if (!options) return make_refusal({400, options.error().message(), {}});
  const Frame frame = server_.parts_.site->snapshot(options->filter, sight_of(routed));
  return make_response(200, "application/json", *frame);
}

namespace {

using TraceFormat = Site::TraceFormat;

struct TraceFile {
  std::string_view word;  // of the query
  TraceFormat format;
  std::string_view type;
  std::string_view name;  // empty: read by programs, not saved as a file
};

constexpr std::array<TraceFile, 3> kTraceFiles = {{
    {"records", TraceFormat::Records, "application/json", ""},
    {"chrome", TraceFormat::Chrome, "application/json", "switches.json"},
    {"pftrace", TraceFormat::Perfetto, "application/octet-stream", "switches.pftrace"},
}};

const TraceFile& file_of(TraceFormat format) {
  return kTraceFiles[static_cast<std::size_t>(format)];
}

bool apply(Site::TraceRequest& request, const std::string& name, const std::string& value) {
  if (name == "format") {
    for (const TraceFile& file : kTraceFiles) {
      if (file.word != value) continue;
      request.format = file.format;
      return true;
    }
    return false;
  }
  if (name == "at") {
    const auto seconds = parse_decimal(value);
    constexpr double kMost = 1e9;  // thirty years after the start of the head's machine
    if (!seconds || *seconds < 0 || *seconds > kMost) return false;
    request.at = TimePoint(Duration(static_cast<std::int64_t>(*seconds * 1e9)));
    return true;
  }
  const auto number = parse_number<std::uint64_t>(value);
  if (!number) return false;
  if (name == "late") request.late = *number;
  if (name == "seconds") request.since = std::chrono::seconds(std::min<std::uint64_t>(*number, 61));
  return name == "late" || (name == "seconds" && *number >= 1 && *number <= 60);
}

// Drawings take ten times the work of records, on the thread that also schedules.
bool is_too_long(const Site::TraceRequest& request) {
  constexpr Duration kLongestDrawn = 10s;
  const bool is_around = request.late || request.at;
  return request.format != TraceFormat::Records && !is_around && request.since > kLongestDrawn;
}

}  // namespace

asio::awaitable<Response> HttpSession::trace(Routed routed) {
  Site::TraceRequest request;
  for (const auto& [name, value] : routed.target.query) {
    if (!apply(request, name, value)) co_return make_refusal({400, name, {}});
  }
  if (is_too_long(request)) co_return make_refusal({400, "format: at most 10 s can be drawn", {}});
  auto found = co_await server_.parts_.site->trace(request);
  if (!found) {
    co_return make_response(status_of(found.error()), "application/json",
                            error_body(found.error().message()));
  }
  const TraceFile& file = file_of(request.format);
  Response response = make_response(200, file.type, *std::move(found));
  if (!file.name.empty()) {
    response.set(http::field::content_disposition,
                 fmt::format("attachment; filename=\"{}\"", file.name));
  }
  co_return response;
}

Response HttpSession::history(const Routed& routed) {
  HistoryRequest request;
  for (const auto& [name, value] : routed.target.query) {
    const auto step = parse_number<std::uint32_t>(value);
    if (name == "step" && step) {
      request.step = std::chrono::seconds(*step);
    } else if (name == "format" && (value == "csv" || value == "json")) {
      request.as_csv = value == "csv";
    } else {
      return make_refusal({400, name, {}});
    }
  }
  auto found = server_.parts_.site->history(request);
  if (!found) {
    return make_response(status_of(found.error()), "application/json",
                         error_body(found.error().message()));
  }
  Response response = make_response(
      200, request.as_csv ? "text/csv; charset=utf-8" : "application/json", *std::move(found));
  if (request.as_csv) {
    response.set(http::field::content_disposition, "attachment; filename=\"history.csv\"");
  }
  return response;
}

}  // namespace score::monitor
