// HTTP by Boost.Beast. A request is read whole (headers 16 KiB, body 64 KiB, 5 s), taken apart into
// the few fields that matter, and given to the router, which is pure; only then is anything done.
//
// Streams are one coroutine a viewer that waits for its mailbox: at most one document is being
// written and one waits. Documents are shared, never copied.
#include "monitor/http_server.hpp"

#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "monitor/http_session.hpp"
#include "monitor/http_tls.hpp"

#include <algorithm>

namespace score::monitor {

namespace {

constexpr std::size_t kMaxConnections = Hub::kMaxViewers + 128;

std::string field(const http::request<http::string_body>& message, http::field name) {
  return std::string(message[name]);
}

}  // namespace

// ---- between Beast and us ---------------------------------------------------------------------

Request request_of(const http::request<http::string_body>& message) {
  Request request;
  request.method = message.method_string();
  request.target = message.target();
  // Two of a header that decides something are one too many: none counts.
  const auto only = [&](http::field name) {
    return message.count(name) == 1 ? field(message, name) : std::string();
  };
  request.host = only(http::field::host);
  request.origin =
      message.count(http::field::origin) > 1 ? "?" : field(message, http::field::origin);
  request.cookie = only(http::field::cookie);
  request.authorization = only(http::field::authorization);
  request.content_type = only(http::field::content_type);
  request.if_none_match = field(message, http::field::if_none_match);
  request.csrf = std::string(message["X-Scored-Csrf"]);
  request.is_upgrade = websocket::is_upgrade(message);
  request.body = message.body();
  return request;
}

int status_of(const beast::error_code& failed, bool has_target) {
  if (failed == http::error::header_limit) return has_target ? 431 : 414;
  if (failed == http::error::body_limit) return 413;
  if (failed == beast::error::timeout) return 408;
  if (failed == http::error::end_of_stream || failed == http::error::partial_message) return 0;
  if (failed.category() == make_error_code(http::error::bad_method).category()) return 400;
  return 0;
}

Response make_response(int status, std::string_view type, std::string body) {
  Response response(static_cast<http::status>(status), 11);
  response.set(http::field::server, "scored");
  if (!type.empty()) response.set(http::field::content_type, type);
  response.set(http::field::cache_control, "no-store");
  response.set("Content-Security-Policy",
               "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
               "object-src 'none'");
  response.set("X-Content-Type-Options", "nosniff");
  response.set("X-Frame-Options", "DENY");
  response.set("Referrer-Policy", "no-referrer");
  response.set("Cross-Origin-Opener-Policy", "same-origin");
  response.set("Cross-Origin-Resource-Policy", "same-origin");
  response.set("Permissions-Policy", "camera=(), geolocation=(), microphone=()");
  response.body() = std::move(body);
  return response;
}

std::string error_body(std::string_view text) {
  JsonWriter json(JsonWriter::Layout::Line);
  json.begin_object().field("ok", false).field("error", text).end_object();
  return json.take() + "\n";
}

Response make_refusal(const Refusal& refusal) {
  Response response = make_response(refusal.status, "application/json", error_body(refusal.text));
  if (!refusal.allow.empty()) response.set(http::field::allow, refusal.allow);
  if (refusal.status == 426) response.set(http::field::upgrade, "websocket");
  return response;
}

int status_of(const Error& error) {
  if (error.is(Errc::Malformed) || error.is(Errc::TooLarge)) return 400;
  if (error.is(Errc::Denied)) return 403;
  if (error.is(Errc::NotFound)) return 404;
  if (error.is(Errc::Busy)) return 503;
  return 409;
}

// ---- the server ---------------------------------------------------------------------------------

struct HttpServer::Listener {
  explicit Listener(asio::io_context& io) : acceptor(io) {}

  asio::ip::tcp::acceptor acceptor;
};

HttpServer::HttpServer(Parts parts, HttpOptions options, PageFiles pages)
    : parts_(parts), options_(std::move(options)), pages_(std::move(pages)) {}

HttpServer::~HttpServer() = default;

bool is_loopback(const std::string& host) {
  boost::system::error_code failed;
  const auto address = asio::ip::make_address(host, failed);
  return !failed && address.is_loopback();
}

Status HttpServer::open() {
  const HttpAddress& listen = options_.listen;
  boost::system::error_code failed;
  const auto address = asio::ip::make_address(listen.host, failed);
  if (failed) return fail(Errc::Malformed, "monitor: {} is no IP address", listen.host);
  const bool is_local = address.is_loopback();
  if (!is_local && (options_.certificate.empty() || options_.token.empty())) {
    return fail(Errc::Denied,
                "monitor: {} is not a loopback address: that needs tls_certificate, tls_key and "
                "token_file",
                listen.host);
  }
  listener_ = std::make_unique<Listener>(parts_.io);
  auto& acceptor = listener_->acceptor;
  const asio::ip::tcp::endpoint endpoint(address, listen.port);
  acceptor.open(endpoint.protocol(), failed);
  if (!failed) acceptor.set_option(asio::socket_base::reuse_address(true), failed);
  if (!failed) acceptor.bind(endpoint, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (failed) return fail(failed, "monitor: listen at {}:{}", listen.host, listen.port);
  if (!options_.certificate.empty()) {
    auto loaded = load_tls(options_.certificate, options_.key);
    if (!loaded) return loaded.error();
    tls_ = *std::move(loaded);
    rules_.scheme = "https";
  }
  rules_.needs_login = !is_local;
  rules_.token = options_.token;
  rules_.cookie_name = "scored_" + std::to_string(port());
  const std::string at = ":" + std::to_string(port());
  const std::string shown = address.is_v6() ? "[" + listen.host + "]" : listen.host;
  rules_.hosts = options_.names;
  rules_.hosts.push_back(shown + at);
  if (is_local) rules_.hosts.push_back("localhost" + at);
  return {};
}

std::uint16_t HttpServer::port() const {
  boost::system::error_code ignored;
  return listener_ ? listener_->acceptor.local_endpoint(ignored).port() : std::uint16_t{0};
}

std::string HttpServer::url() const {
  return rules_.scheme + "://" + rules_.hosts[options_.names.size()] + "/";
}

void HttpServer::start() {
  parts_.tasks.spawn("serve the web", accept());
}

void HttpServer::close() {
  is_closing_ = true;
  boost::system::error_code ignored;
  if (listener_) listener_->acceptor.close(ignored);
  for (const auto& [id, closer] : std::map(closers_)) closer();
}

asio::awaitable<void> HttpServer::accept() {
  while (!is_closing_) {
    auto [failed, socket] = co_await listener_->acceptor.async_accept(kNoThrow);
    if (failed == asio::error::operation_aborted || is_closing_) co_return;
    if (failed) {  // of descriptors there may be more in a moment
      co_await parts_.clock.sleep_for(100ms);
      continue;
    }
    if (connections_ >= kMaxConnections) {
      if (limiter_.allow(parts_.clock.now())) {
        log_warning("refuse viewer: too many", kv("connections", connections_),
                    kv("suppressed", limiter_.take_suppressed()));
      }
      continue;  // closes it
    }
    boost::system::error_code ignored;
    socket.set_option(asio::ip::tcp::no_delay(true), ignored);
    auto serving = serve(std::move(socket));
    parts_.tasks.spawn("serve client", std::move(serving));
  }
}

namespace {

// Counts a connection while its task runs, however that ends.
class Presence {
 public:
  Presence(std::size_t& count, std::map<std::uint64_t, std::function<void()>>& closers,
           std::uint64_t id)
      : count_(count), closers_(closers), id_(id) {
    ++count_;
  }

  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  ~Presence() {
    --count_;
    closers_.erase(id_);
  }

 private:
  std::size_t& count_;
  std::map<std::uint64_t, std::function<void()>>& closers_;
  std::uint64_t id_;
};

}  // namespace

asio::awaitable<void> HttpServer::serve(asio::ip::tcp::socket socket) {
  const std::uint64_t id = ++last_id_;
  const Presence presence(connections_, closers_, id);
  if (tls_) {
    auto serving = serve_tls(std::move(socket), id);
    co_await std::move(serving);
    co_return;
  }
  using Plain = beast::tcp_stream;
  auto session = std::make_shared<HttpSession<Plain>>(*this, Plain(std::move(socket)));
  closers_[id] = [session] { session->close(); };
  co_await session->run();
}

void HttpServer::count(const std::string& method, int status, Duration time) {
  const bool is_known = method == "GET" || method == "POST" || method == "HEAD" || method == "-";
  Count& count = counts_[{is_known ? method : "other", status}];
  ++count.requests;
  count.times.add(time);
}

}  // namespace score::monitor
