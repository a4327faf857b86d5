// The server has four listeners: TCP, TLS over TCP, a Unix socket for a proxy that authenticates
// its users, and one for programs of this host. HttpConnection serves all connections.
#include "monitor/http/http_server.hpp"

#include "base/os/fd.hpp"
#include "monitor/model/hub.hpp"

#include <algorithm>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score::monitor {

namespace {

constexpr std::size_t kMaxConnections = Hub::kMaxViewers + 128;
// All users of this host have the same address, and so do all users behind a proxy.
constexpr std::size_t kMaxOfPeer = kMaxConnections - 64;
constexpr const char* kProxy = "proxy";

std::string authority_of(const std::string& url) {
  return url.substr(url.find("://") + 3);
}

}  // namespace

struct HttpServer::Listener {
  explicit Listener(asio::io_context& io) : acceptor(io), proxy(io), programs(io) {}

  asio::ip::tcp::acceptor acceptor;
  asio::local::stream_protocol::acceptor proxy;
  asio::local::stream_protocol::acceptor programs;
};

HttpServer::HttpServer(Parts parts, HttpOptions options, PageFiles pages)
    : parts_(parts),
      options_(std::move(options)),
      pages_(std::move(pages)),
      connection_limiter_({kMaxConnections, kMaxOfPeer}) {}

HttpServer::~HttpServer() = default;

bool is_loopback(const std::string& host) {
  boost::system::error_code failed;
  const auto address = asio::ip::make_address(host, failed);
  return !failed && address.is_loopback();
}

Status HttpServer::open(std::uint16_t port) {
  boost::system::error_code failed;
  const auto address = asio::ip::make_address(options_.host, failed);
  if (failed) return fail(Errc::Malformed, "monitor: {} is no IP address", options_.host);
  const bool is_local = address.is_loopback();
  if (!is_local && (options_.certificate.empty() || options_.token.empty())) {
    return fail(Errc::Denied,
                "monitor: {} is not a loopback address: that needs tls_certificate, tls_key and "
                "token_file",
                options_.host);
  }
  if (!options_.certificate.empty()) {
    auto loaded = load_tls(options_.certificate, options_.key);
    if (!loaded) return loaded.error().with_context("monitor");
    tls_ = *std::move(loaded);
    rules_.scheme = "https";
  }
  listener_ = std::make_unique<Listener>(parts_.io);
  if (auto done = listen({address, port}); !done) return done;
  if (options_.proxy) {
    if (auto done = listen_for_proxy(); !done) return done;
  }
  if (!options_.api_socket.empty()) {
    if (auto done = listen_for_programs(); !done) return done;
  }
  set_rules(is_local, address.is_v6() ? "[" + options_.host + "]" : options_.host);
  return {};
}

Status HttpServer::listen(const asio::ip::tcp::endpoint& endpoint) {
  boost::system::error_code failed;
  auto& acceptor = listener_->acceptor;
  acceptor.open(endpoint.protocol(), failed);
  if (!failed) acceptor.set_option(asio::socket_base::reuse_address(true), failed);
  if (!failed) acceptor.bind(endpoint, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (failed)
    return fail(failed, "monitor: cannot listen at {}:{}", options_.host, endpoint.port());
  return {};
}

namespace {

// Listens on a Unix socket that any user can connect to. A socket file of that name is replaced.
Status listen_at(const std::string& path, asio::local::stream_protocol::acceptor& acceptor) {
  struct stat old {};

  if (lstat(path.c_str(), &old) == 0 && S_ISSOCK(old.st_mode)) unlink(path.c_str());
  boost::system::error_code failed;
  const asio::local::stream_protocol::endpoint endpoint(path);
  acceptor.open(endpoint.protocol(), failed);
  if (!failed) acceptor.bind(endpoint, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (!failed && chmod(path.c_str(), 0666) != 0) failed = {errno, boost::system::system_category()};
  if (failed) return fail(failed, "monitor: cannot listen at {}", path);
  return {};
}

}  // namespace

// Only the proxy's user is served.
Status HttpServer::listen_for_proxy() {
  return listen_at(options_.proxy->path, listener_->proxy);
}

Status HttpServer::listen_for_programs() {
  return listen_at(options_.api_socket, listener_->programs);
}

void HttpServer::set_rules(bool is_local, const std::string& shown) {
  rules_.needs_login = !is_local;
  rules_.is_elsewhere = static_cast<bool>(parts_.elsewhere);
  rules_.has_api = options_.has_api && parts_.api != nullptr;
  rules_.token = options_.token;
  rules_.cookie_name = "scored_" + std::to_string(port());
  const std::string at = ":" + std::to_string(port());
  rules_.hosts = options_.names;
  const bool is_any = !options_.names.empty() && !is_local;  // "0.0.0.0" is no name for others
  rules_.hosts.insert(is_any ? rules_.hosts.end() : rules_.hosts.begin(), shown + at);
  if (is_local) rules_.hosts.push_back("localhost" + at);
  rules_.origins.clear();
  for (const std::string& host : rules_.hosts) {
    rules_.origins.push_back(rules_.scheme + "://" + host);
  }
  if (options_.public_url.empty()) return;
  rules_.public_host = authority_of(options_.public_url);
  rules_.hosts.push_back(rules_.public_host);
  rules_.origins.push_back(options_.public_url);
}

std::uint16_t HttpServer::port() const {
  boost::system::error_code ignored;
  return listener_ ? listener_->acceptor.local_endpoint(ignored).port() : std::uint16_t{0};
}

std::string HttpServer::url() const {
  if (!options_.public_url.empty()) return options_.public_url + "/";
  return rules_.scheme + "://" + rules_.hosts.front() + "/";
}

void HttpServer::start() {
  parts_.tasks.spawn("serve the web", accept());
  if (options_.proxy) parts_.tasks.spawn("serve the proxy", accept_proxy());
  if (!options_.api_socket.empty()) parts_.tasks.spawn("serve programs", accept_programs());
}

void HttpServer::close() {
  is_closing_ = true;
  boost::system::error_code ignored;
  if (listener_) listener_->acceptor.close(ignored);
  if (listener_) listener_->proxy.close(ignored);
  if (listener_) listener_->programs.close(ignored);
  if (options_.proxy) unlink(options_.proxy->path.c_str());
  if (!options_.api_socket.empty()) unlink(options_.api_socket.c_str());
  for (const auto& [id, exits] : std::map(exits_)) exits.close();
}

std::optional<std::uint64_t> HttpServer::let_in(const std::string& peer) {
  const std::uint64_t id = ++last_id_;
  const ConnectionLimiter::Verdict verdict = connection_limiter_.enter(id, peer);
  if (verdict.leaves) {
    const auto leaver = exits_.find(*verdict.leaves);
    if (leaver != exits_.end()) std::function<void()>(leaver->second.drop)();
  }
  if (verdict.may_enter) return id;
  if (limiter_.allow(parts_.clock.now())) {
    log_warning("Rejected a viewer: too many connections", kv("peer", peer),
                kv("connections", connection_limiter_.size()),
                kv("suppressed", limiter_.take_suppressed()));
  }
  return std::nullopt;
}

namespace {

// Returns the address of the peer. For IPv6 it is the network, because one host has many addresses
// there.
std::string peer_of(const asio::ip::tcp::socket& socket) {
  boost::system::error_code failed;
  const auto address = socket.remote_endpoint(failed).address();
  if (failed || !address.is_v6() || address.is_loopback()) return address.to_string();
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return asio::ip::address_v6(bytes).to_string() + "/64";
}

}  // namespace

asio::awaitable<void> HttpServer::accept() {
  while (!is_closing_) {
    auto [failed, socket] = co_await listener_->acceptor.async_accept(kNoThrow);
    if (failed == asio::error::operation_aborted || is_closing_) co_return;
    if (failed) {  // more descriptors may be free in a moment
      co_await parts_.clock.sleep_for(100ms);
      continue;
    }
    HttpOrigin origin;
    origin.peer = peer_of(socket);
    const auto id = let_in(origin.peer);
    if (!id) continue;  // closes the socket
    origin.id = *id;
    boost::system::error_code ignored;
    socket.set_option(asio::ip::tcp::no_delay(true), ignored);
    auto serving = tls_ ? serve_tls(std::move(socket), std::move(origin))
                        : serve(Socket(std::move(socket)), std::move(origin));
    parts_.tasks.spawn("serve client", std::move(serving));
  }
}

asio::awaitable<void> HttpServer::accept_proxy() {
  while (!is_closing_) {
    auto [failed, socket] = co_await listener_->proxy.async_accept(kNoThrow);
    if (failed == asio::error::operation_aborted || is_closing_) co_return;
    if (failed) {
      co_await parts_.clock.sleep_for(100ms);
      continue;
    }
    const auto peer = peer_credentials(socket.native_handle());
    if (!peer || peer->uid != options_.proxy->user) {
      if (limiter_.allow(parts_.clock.now())) {
        log_warning("Rejected a connection to the proxy socket: wrong user",
                    kv("uid", peer ? std::to_string(peer->uid.value()) : "?"),
                    kv("suppressed", limiter_.take_suppressed()));
      }
      continue;
    }
    HttpOrigin origin;
    origin.peer = kProxy;
    origin.source = HttpSource::Proxy;
    const auto id = let_in(origin.peer);
    if (!id) continue;
    origin.id = *id;
    auto serving = serve(Socket(std::move(socket)), std::move(origin));
    parts_.tasks.spawn("serve client", std::move(serving));
  }
}

asio::awaitable<void> HttpServer::accept_programs() {
  while (!is_closing_) {
    auto [failed, socket] = co_await listener_->programs.async_accept(kNoThrow);
    if (failed == asio::error::operation_aborted || is_closing_) co_return;
    if (failed) {
      co_await parts_.clock.sleep_for(100ms);
      continue;
    }
    const auto peer = peer_credentials(socket.native_handle());
    if (!peer) continue;
    HttpOrigin origin;
    origin.peer = fmt::format("user {}", peer->uid);
    origin.source = HttpSource::Local;
    origin.user = peer->uid;
    const auto id = let_in(origin.peer);
    if (!id) continue;
    origin.id = *id;
    auto serving = serve(Socket(std::move(socket)), std::move(origin));
    parts_.tasks.spawn("serve client", std::move(serving));
  }
}

namespace {

// AtEnd runs its function when a connection's task ends, for any reason.
class AtEnd {
 public:
  explicit AtEnd(std::function<void()> work) : work_(std::move(work)) {}

  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

  ~AtEnd() { work_(); }

 private:
  std::function<void()> work_;
};

}  // namespace

void HttpServer::forget(std::uint64_t id) {
  connection_limiter_.left(id);
  exits_.erase(id);
}

asio::awaitable<void> HttpServer::serve(Socket socket, HttpOrigin origin) {
  const std::uint64_t id = origin.id;
  const AtEnd leaving([this, id] { forget(id); });
  auto connection = make_connection(*this, std::move(socket), std::move(origin));
  exits_[id] = {[connection] { connection->close(); }, [connection] { connection->drop(); }};
  co_await connection->run();
}

// Connections in the handshake are counted too, because each has three descriptors.
asio::awaitable<void> HttpServer::serve_tls(asio::ip::tcp::socket socket, HttpOrigin origin) {
  const std::uint64_t id = origin.id;
  const AtEnd leaving([this, id] { forget(id); });
  const auto cut = [fd = socket.native_handle()] { ::shutdown(fd, SHUT_RDWR); };
  exits_[id] = {cut, cut};
  auto secured = secure(parts_.clock, parts_.tasks, *tls_, std::move(socket));
  auto plain = co_await std::move(secured);
  exits_.erase(id);  // its descriptor may have been reused by now
  if (!plain) co_return;
  auto serving = serve(*std::move(plain), std::move(origin));
  co_await std::move(serving);
}

void HttpServer::count(const std::string& method, int status, Duration time) {
  const bool is_known = method == "GET" || method == "POST" || method == "HEAD" ||
                        method == "PATCH" || method == "DELETE" || method == "-";
  Count& count = counts_[{is_known ? method : "other", status}];
  ++count.requests;
  count.times.add(time);
}

}  // namespace score::monitor
