// Beast parses the answers. Its own reading functions are templates of the stream that would be
// compiled for TLS, so this file reads the bytes and passes them to the parser.
#include "scored/head/etcd/etcd_client.hpp"

#include "base/async/asio_ssl.hpp"
#include "base/async/timeout.hpp"
#include "base/os/fd.hpp"
#include "scored/head/etcd/etcd_message.hpp"

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

#include <array>
#include <utility>

namespace score::head::etcd {

namespace http = boost::beast::http;

namespace {

using Secure = asio::ssl::stream<asio::ip::tcp::socket>;

// Several members can be tried within one lease.
constexpr Duration kConnectTime = 700ms;
constexpr Duration kAnswerTime = 700ms;
constexpr std::size_t kMaxHeaderBytes = 8 * 1024;

}  // namespace

struct EtcdClient::Link {
  explicit Link(asio::io_context& where) : io(where) {}

  asio::io_context& io;
  asio::ssl::context tls{asio::ssl::context::tls_client};
  std::unique_ptr<Secure> stream;  // none: not connected
};

EtcdClient::EtcdClient(asio::io_context& io, Clock& clock, const LeaseConfig& config)
    : clock_(clock), members_(config.etcd), link_(std::make_unique<Link>(io)) {}

EtcdClient::~EtcdClient() = default;

Result<std::unique_ptr<EtcdClient>> EtcdClient::open(asio::io_context& io, Clock& clock,
                                                     const LeaseConfig& config) {
  std::unique_ptr<EtcdClient> client(new EtcdClient(io, clock, config));
  asio::ssl::context& tls = client->link_->tls;
  boost::system::error_code failed;
  tls.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                  asio::ssl::context::no_tlsv1_1);
  tls.set_verify_mode(asio::ssl::verify_peer, failed);
  if (!failed) tls.load_verify_file(config.ca_file, failed);
  if (failed) return fail(Errc::Malformed, "etcd_ca: cannot use {}", config.ca_file);
  if (config.certificate_file.empty()) return client;
  tls.use_certificate_chain_file(config.certificate_file, failed);
  if (failed) {
    return fail(Errc::Malformed, "etcd_certificate: cannot use {}", config.certificate_file);
  }
  tls.use_private_key_file(config.private_key_file, asio::ssl::context::pem, failed);
  if (failed) return fail(Errc::Malformed, "etcd_key: cannot use {}", config.private_key_file);
  return client;
}

std::string EtcdClient::member() const {
  return proto::format_endpoint(members_[at_]);
}

void EtcdClient::leave_member() {
  link_->stream.reset();
  at_ = (at_ + 1) % members_.size();
}

asio::awaitable<Result<void>> EtcdClient::connect() {
  const std::string host = members_[at_].host;
  const std::string port = std::to_string(members_[at_].port);
  asio::ip::tcp::resolver resolver(link_->io);
  auto [unknown, found] = co_await resolver.async_resolve(host, port, kNoThrow);
  if (unknown) co_return Error(Errc::NotFound, "no such host");
  auto stream = std::make_unique<Secure>(link_->io, link_->tls);
  auto [refused, where] = co_await asio::async_connect(stream->next_layer(), found, kNoThrow);
  if (refused) co_return Error(Errc::Closed, refused.message());
  boost::system::error_code failed;
  stream->next_layer().set_option(asio::ip::tcp::no_delay(true), failed);
  stream->set_verify_callback(asio::ssl::host_name_verification(host), failed);
  // The macro SSL_set_tlsext_host_name() has a cast that the project's warnings forbid.
  const bool is_named = SSL_ctrl(stream->native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME,
                                 TLSEXT_NAMETYPE_host_name, const_cast<char*>(host.c_str())) == 1;
  if (!is_named || failed) {
    co_return Error(Errc::Denied, "cannot prepare TLS");
  }
  auto [broken] = co_await stream->async_handshake(asio::ssl::stream_base::client, kNoThrow);
  const long verified = SSL_get_verify_result(stream->native_handle());
  if (broken && verified != X509_V_OK) {
    co_return fail(Errc::Denied, "its certificate is not trusted: {}",
                   X509_verify_cert_error_string(verified));
  }
  if (broken) co_return fail(Errc::Denied, "no TLS connection: {}", broken.message());
  link_->stream = std::move(stream);
  co_return Result<void>();
}

asio::awaitable<Result<std::string>> EtcdClient::exchange(std::string request) {
  Secure& stream = *link_->stream;
  const auto all = asio::buffer(request);
  auto [unsent, sent] = co_await asio::async_write(stream, all, kNoThrow);
  if (unsent) co_return Error(Errc::Closed, unsent.message());
  http::response_parser<http::string_body> parser;
  parser.header_limit(kMaxHeaderBytes);
  parser.body_limit(kMaxAnswerBytes);
  parser.eager(true);
  std::string bytes;
  std::array<char, 4'096> part;
  while (!parser.is_done()) {
    const auto into = asio::buffer(part);
    auto [ended, got] = co_await stream.async_read_some(into, kNoThrow);
    if (ended) co_return Error(Errc::Closed, "the connection has ended");
    bytes.append(part.data(), got);
    boost::system::error_code failed;
    const std::size_t used = parser.put(asio::buffer(bytes), failed);
    bytes.erase(0, used);
    if (failed && failed != http::error::need_more) {
      co_return fail(Errc::Malformed, "not HTTP: {}", failed.message());
    }
  }
  if (!parser.keep_alive() || !bytes.empty()) link_->stream.reset();
  http::response<http::string_body> message = parser.release();
  if (message.result() == http::status::ok) co_return std::move(message.body());
  co_return Error(Errc::Busy, describe_refusal(message.result_int(), message.body()));
}

asio::awaitable<Result<std::string>> EtcdClient::post(std::string_view path, std::string body) {
  if (!link_->stream) {
    auto connecting = connect();
    const auto connected = co_await with_timeout(clock_, kConnectTime, std::move(connecting));
    if (!connected && connected.error().is(Errc::Timeout)) {
      co_return fail(Errc::Timeout, "no connection in {}", format_duration(kConnectTime));
    }
    if (!connected) co_return connected.error();
  }
  std::string request = fmt::format(
      "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: "
      "{}\r\n\r\n",
      path, member(), body.size());
  request += body;
  auto exchanging = exchange(std::move(request));
  auto answer = co_await with_timeout(clock_, kAnswerTime, std::move(exchanging));
  if (!answer && answer.error().is(Errc::Timeout)) {
    answer = fail(Errc::Timeout, "no answer in {}; etcd answers only while most of its members run",
                  format_duration(kAnswerTime));
  }
  if (!answer && !answer.error().is(Errc::Busy)) link_->stream.reset();
  co_return answer;
}

}  // namespace score::head::etcd
