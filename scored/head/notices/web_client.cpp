#include "scored/head/notices/web_client.hpp"

#include "base/async/asio_ssl.hpp"
#include "base/text.hpp"
#include "scored/head/notices/web_reply.hpp"

#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <array>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <utility>

namespace score::head {

struct TrustedIssuers {
  asio::ssl::context context{asio::ssl::context::tls_client};
};

namespace {

using Tcp = asio::ip::tcp;

// Works for both kinds of streams.
template <class Stream>
asio::awaitable<Result<int>> exchange(Stream& stream, std::string request) {
  const auto all = asio::buffer(request);
  auto [failed, written] = co_await asio::async_write(stream, all, kNoThrow);
  if (failed) co_return fail(failed, "cannot send the request");
  std::string reply;
  std::array<char, 2'048> part{};
  for (;;) {
    const auto room = asio::buffer(part);
    auto [ended, got] = co_await stream.async_read_some(room, kNoThrow);
    if (ended) co_return fail(ended, "no reply");
    reply.append(part.data(), got);
    if (reply.size() > kMaxReplyHead) co_return fail(Errc::TooLarge, "the reply has a long header");
    const auto status = read_status(reply);
    if (!status) co_return status.error();
    if (*status) co_return **status;
  }
}

asio::awaitable<Result<int>> exchange_plain(Tcp::socket socket, std::string request) {
  auto result = co_await exchange(socket, std::move(request));
  co_return result;
}

// From now on the certificate must be for this host. Names are sent to the service, too, which may
// have several certificates.
bool expect_host(SSL* tls, const std::string& host) {
  X509_VERIFY_PARAM* rules = SSL_get0_param(tls);
  if (X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str()) == 1) return true;
  // The macro SSL_set_tlsext_host_name() has a cast that the project's warnings forbid.
  const bool is_named = SSL_ctrl(tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                                 const_cast<char*>(host.c_str())) == 1;
  return is_named && SSL_set1_host(tls, host.c_str()) == 1;
}

// Without a close of TLS: the status line is all that is wanted, and the service may never close.
asio::awaitable<Result<int>> exchange_secure(Tcp::socket socket, std::string host,
                                             std::shared_ptr<TrustedIssuers> issuers,
                                             std::string request) {
  asio::ssl::stream<Tcp::socket> stream(std::move(socket), issuers->context);
  boost::system::error_code failed;
  stream.set_verify_mode(asio::ssl::verify_peer, failed);
  if (failed || !expect_host(stream.native_handle(), host)) {
    co_return fail(Errc::Malformed, "cannot check a certificate for {}", host);
  }
  auto [refused] = co_await stream.async_handshake(asio::ssl::stream_base::client, kNoThrow);
  if (refused) {
    const long why = SSL_get_verify_result(stream.native_handle());
    if (why != X509_V_OK) {
      co_return fail(Errc::Denied, "the certificate of {} is not accepted: {}", host,
                     X509_verify_cert_error_string(why));
    }
    co_return fail(refused, "cannot complete the TLS handshake");
  }
  auto result = co_await exchange(stream, std::move(request));
  co_return result;
}

}  // namespace

Result<std::shared_ptr<TrustedIssuers>> load_issuers(const std::string& ca_file) {
  auto issuers = std::make_shared<TrustedIssuers>();
  auto& context = issuers->context;
  boost::system::error_code failed;
  context.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                          asio::ssl::context::no_tlsv1_1 | asio::ssl::context::no_compression,
                      failed);
  if (!failed && ca_file.empty()) context.set_default_verify_paths(failed);
  if (!failed && !ca_file.empty()) context.load_verify_file(ca_file, failed);
  if (!failed) return issuers;
  if (ca_file.empty()) return fail(failed, "cannot load the certificates of this host");
  return fail(failed, "cannot load ca_file {}", ca_file);
}

Result<std::vector<Tcp::endpoint>> resolve(const WebAddress& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(address.host.c_str(), nullptr, &hints, &found);
  if (failed != 0) {
    return fail(Errc::NotFound, "cannot find host {}: {}", address.host, ::gai_strerror(failed));
  }
  std::vector<Tcp::endpoint> out;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
    Tcp::endpoint endpoint;
    if (each->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), each->ai_addr, each->ai_addrlen);
    endpoint.resize(each->ai_addrlen);
    endpoint.port(address.port);
    out.push_back(endpoint);
  }
  ::freeaddrinfo(found);
  if (out.empty()) return fail(Errc::NotFound, "cannot find host {}", address.host);
  return out;
}

asio::awaitable<Result<int>> send_request(WebAddress address, std::vector<Tcp::endpoint> endpoints,
                                          std::shared_ptr<TrustedIssuers> issuers,
                                          std::string request) {
  const auto executor = co_await asio::this_coro::executor;
  Tcp::socket socket(executor);
  boost::system::error_code failed = asio::error::not_found;
  for (const Tcp::endpoint& endpoint : endpoints) {
    boost::system::error_code ignored;
    socket.close(ignored);
    auto [refused] = co_await socket.async_connect(endpoint, kNoThrow);
    failed = refused;
    if (!failed) break;
  }
  if (failed) co_return fail(failed, "cannot connect to {} port {}", address.host, address.port);
  auto work = address.has_tls ? exchange_secure(std::move(socket), address.host, std::move(issuers),
                                                std::move(request))
                              : exchange_plain(std::move(socket), std::move(request));
  auto result = co_await std::move(work);
  co_return result;
}

}  // namespace score::head
