// This is a bridge: decrypted data goes into one end of a socket pair, and the session serves the
// other end like any connection. Compiling Beast's HTTP and WebSocket code for a TLS stream would
// take minutes. The bridge compiles in seconds and costs two more copies per viewer.
//
// Buffers are bounded: a direction holds one part of kPartBytes, and the pair has the kernel's
// limit. So the session notices a slow viewer as it does without TLS.
#include "monitor/http/http_tls.hpp"

#include "base/async/asio_ssl.hpp"
#include "base/async/timeout.hpp"
#include "base/os/fd.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace score::monitor {

struct TlsFront {
  asio::ssl::context context{asio::ssl::context::tls_server};
};

void DropTlsFront::operator()(TlsFront* front) const {
  delete front;
}

namespace {

constexpr std::size_t kPartBytes = 16 * 1024;  // a TLS record
constexpr Duration kHandshakeTime = 5s;
constexpr Duration kGoodbyeTime = 1s;

using Plain = asio::generic::stream_protocol::socket;

struct Bridge {
  Bridge(asio::ip::tcp::socket socket, asio::ssl::context& context, Plain inner)
      : secure(std::move(socket), context), plain(std::move(inner)) {}

  void close() {
    boost::system::error_code ignored;
    secure.next_layer().close(ignored);
    plain.close(ignored);
  }

  asio::ssl::stream<asio::ip::tcp::socket> secure;
  Plain plain;
};

using BridgePtr = std::shared_ptr<Bridge>;

asio::awaitable<Result<void>> shake_hands(BridgePtr bridge) {
  auto [failed] = co_await bridge->secure.async_handshake(asio::ssl::stream_base::server, kNoThrow);
  if (failed) co_return fail(failed, "cannot complete the TLS handshake");
  co_return Result<void>();
}

asio::awaitable<Result<void>> shut_down(BridgePtr bridge) {
  auto [failed] = co_await bridge->secure.async_shutdown(kNoThrow);
  if (failed) co_return fail(failed, "cannot shut TLS down");
  co_return Result<void>();
}

// Copies data from the viewer to the session. The viewer's end of file is passed on, because the
// session may still have data to send.
asio::awaitable<void> carry_in(BridgePtr bridge) {
  std::vector<char> part(kPartBytes);
  for (;;) {
    const auto room = asio::buffer(part);
    auto [ended, got] = co_await bridge->secure.async_read_some(room, kNoThrow);
    if (ended) break;
    const auto bytes = asio::buffer(part.data(), got);
    auto [failed, written] = co_await asio::async_write(bridge->plain, bytes, kNoThrow);
    if (failed) break;
  }
  boost::system::error_code ignored;
  bridge->plain.shutdown(asio::socket_base::shutdown_send, ignored);
}

// Copies data from the session to the viewer. When the session has ended, its input is no longer
// read.
asio::awaitable<void> carry_out(Clock& clock, BridgePtr bridge) {
  std::vector<char> part(kPartBytes);
  for (;;) {
    const auto room = asio::buffer(part);
    auto [ended, got] = co_await bridge->plain.async_read_some(room, kNoThrow);
    if (ended) break;
    const auto bytes = asio::buffer(part.data(), got);
    auto [failed, written] = co_await asio::async_write(bridge->secure, bytes, kNoThrow);
    if (failed) break;
  }
  auto goodbye = shut_down(bridge);
  [[maybe_unused]] auto said = co_await with_timeout(clock, kGoodbyeTime, std::move(goodbye));
  bridge->close();
}

Result<std::pair<Plain, Plain>> make_pair_of(const asio::any_io_executor& executor) {
  auto made = make_socket_pair(SOCK_STREAM);
  if (!made) return made.error();
  const asio::generic::stream_protocol protocol(AF_UNIX, 0);
  Plain inner(executor), outer(executor);
  boost::system::error_code failed;
  inner.assign(protocol, made->first.get(), failed);
  if (failed) return fail(failed, "cannot use a socket pair");
  (void)made->first.release();
  outer.assign(protocol, made->second.get(), failed);
  if (failed) return fail(failed, "cannot use a socket pair");
  (void)made->second.release();
  return std::pair(std::move(inner), std::move(outer));
}

Status check_key_mode(const std::string& path) {
  struct stat info {};

  if (stat(path.c_str(), &info) != 0) return fail(errno_code(errno), "{}", path);
  if ((info.st_mode & 007) != 0) return fail(Errc::Denied, "{} is open to others: chmod 640", path);
  return {};
}

}  // namespace

Result<TlsFrontPtr> load_tls(const std::string& certificate, const std::string& key) {
  if (auto checked = check_key_mode(key); !checked) return checked.error();
  TlsFrontPtr front(new TlsFront);
  auto& context = front->context;
  boost::system::error_code failed;
  context.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                          asio::ssl::context::no_tlsv1_1 | asio::ssl::context::no_compression |
                          asio::ssl::context::single_dh_use,
                      failed);
  if (!failed) context.use_certificate_chain_file(certificate, failed);
  if (failed) return fail(failed, "cannot load tls_certificate {}", certificate);
  context.use_private_key_file(key, asio::ssl::context::pem, failed);
  if (failed) return fail(failed, "cannot load tls_key {}", key);
  return front;
}

asio::awaitable<Result<Plain>> secure(Clock& clock, TaskGroup& tasks, TlsFront& front,
                                      asio::ip::tcp::socket socket) {
  const auto executor = socket.get_executor();
  auto pair = make_pair_of(executor);
  if (!pair) co_return pair.error();
  auto bridge = std::make_shared<Bridge>(std::move(socket), front.context, std::move(pair->first));
  auto shaking = shake_hands(bridge);
  auto shaken = co_await with_timeout(clock, kHandshakeTime, std::move(shaking));
  if (!shaken) co_return shaken.error();
  auto inward = carry_in(bridge);
  auto outward = carry_out(clock, bridge);
  tasks.spawn("from a TLS client", std::move(inward));
  tasks.spawn("to a TLS client", std::move(outward));
  co_return std::move(pair->second);
}

}  // namespace score::monitor
