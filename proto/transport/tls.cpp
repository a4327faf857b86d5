// OpenSSL is driven directly, over our own BIO, instead of through Asio's stream. Asio's stream
// keeps two 17 KiB buffers and a BIO pair per connection; the head has thousands of connections,
// and the node daemon has a budget of 8 MB in total. The socket BIO of OpenSSL would write without
// MSG_NOSIGNAL.
//
// External keys in TLS 1.3 (RFC 8446 4.2.11) are represented as sessions: the callbacks make a
// session that holds the key and the cipher with the matching hash. A server without certificates
// cannot complete a different handshake. A client checks after the handshake that its key was used,
// and accepts no other one. This file is tested by tls_connection_test.cpp.

#include "proto/transport/tls.hpp"

#include "base/assert.hpp"
#include "base/errc.hpp"
#include "base/text/hostlist.hpp"
#include "proto/frames/errc.hpp"
#include "proto/transport/setup_token.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <utility>

namespace score::proto {

struct TlsContext::Secrets {
  KeyOf key_of;      // server
  Key key;           // client: the node's
  std::string name;  // client
};

namespace {

constexpr std::size_t kRecordBytes = 16U << 10U;
constexpr std::array<unsigned char, 2> kCipherId{0x13, 0x01};  // TLS_AES_128_GCM_SHA256

void start_library() {
  // No configuration file is read: the settings of a distribution or a user must not change our
  // security, and parsing the file costs memory. The tables of error texts and of old algorithm
  // names are not loaded either, because nothing reads them.
  constexpr std::uint64_t kLean = OPENSSL_INIT_NO_LOAD_CONFIG |
                                  OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS |
                                  OPENSSL_INIT_NO_ADD_ALL_CIPHERS | OPENSSL_INIT_NO_ADD_ALL_DIGESTS;
  constexpr std::uint64_t kLeanSsl = OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_LOAD_SSL_STRINGS;
  static const bool started =
      OPENSSL_init_crypto(kLean, nullptr) == 1 && OPENSSL_init_ssl(kLeanSsl, nullptr) == 1;
  SCORE_ASSERT(started, "OpenSSL does not start");
}

int name_index() {
  static const int index = SSL_get_ex_new_index(
      0, nullptr, nullptr, nullptr, [](void*, void* name, CRYPTO_EX_DATA*, int, long, void*) {
        delete static_cast<std::string*>(name);
      });
  return index;
}

int secrets_index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

const TlsContext::Secrets& secrets_of(SSL* ssl) {
  return *static_cast<TlsContext::Secrets*>(
      SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), secrets_index()));
}

SSL_SESSION* session_with(SSL* ssl, const Key& key) {
  SSL_SESSION* session = SSL_SESSION_new();
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, kCipherId.data());
  if (session != nullptr && cipher != nullptr &&
      SSL_SESSION_set1_master_key(session, key.bytes().data(), key.bytes().size()) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
    return session;
  }
  SSL_SESSION_free(session);
  return nullptr;
}

// Finds the key of the identity that a client offers to the server. Without a session the name is
// unknown, and the handshake fails for lack of a certificate.
int find_session(SSL* ssl, const unsigned char* identity, std::size_t bytes,
                 SSL_SESSION** session) {
  *session = nullptr;
  std::string_view name(reinterpret_cast<const char*>(identity), bytes);
  const auto key = secrets_of(ssl).key_of(name);
  if (!key) return 1;
  delete static_cast<std::string*>(SSL_get_ex_data(ssl, name_index()));
  SSL_set_ex_data(ssl, name_index(), new std::string(name));
  *session = session_with(ssl, *key);
  return *session != nullptr ? 1 : 0;
}

int use_session(SSL* ssl, const EVP_MD* hash, const unsigned char** identity, std::size_t* bytes,
                SSL_SESSION** session) {
  *session = nullptr;
  if (hash != nullptr && !EVP_MD_is_a(hash, "SHA256")) return 0;
  const auto& secrets = secrets_of(ssl);
  *identity = reinterpret_cast<const unsigned char*>(secrets.name.data());
  *bytes = secrets.name.size();
  *session = session_with(ssl, secrets.key);
  return *session != nullptr ? 1 : 0;
}

// ---- the BIO: the descriptor, without blocking and without SIGPIPE

int fd_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

int bio_write(BIO* bio, const char* data, int bytes) {
  BIO_clear_retry_flags(bio);
  ssize_t n = 0;
  do {
    n = ::send(fd_of(bio), data, static_cast<std::size_t>(bytes), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) BIO_set_retry_write(bio);
  return static_cast<int>(n);
}

int bio_read(BIO* bio, char* data, int bytes) {
  BIO_clear_retry_flags(bio);
  ssize_t n = 0;
  do {
    n = ::recv(fd_of(bio), data, static_cast<std::size_t>(bytes), MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) BIO_set_retry_read(bio);
  if (n == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(n);
}

long bio_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return 0;
}

BIO* descriptor_bio(int fd) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "scored socket");
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  BIO* bio = BIO_new(method);
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  BIO_set_init(bio, 1);
  return bio;
}

ssl_ctx_st* make_context(bool is_server, TlsContext::Secrets* secrets) {
  start_library();
  SSL_CTX* context = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
  SCORE_ASSERT(context != nullptr, "no TLS context");
  bool is_set = SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1 &&
                SSL_CTX_set1_groups_list(context, "X25519") == 1 &&
                SSL_CTX_set_num_tickets(context, 0) == 1 &&
                SSL_CTX_set_ex_data(context, secrets_index(), secrets) == 1;
  SCORE_ASSERT(is_set, "OpenSSL refuses TLS 1.3 with AES-128-GCM and X25519");
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // With read-ahead, a record takes one system call instead of two.
  SSL_CTX_set_read_ahead(context, 1);
  // A missing close_notify is treated as end of file, because frames already show if a stream was
  // truncated.
  SSL_CTX_set_options(context,
                      SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_cert_list(context, 4096);
  if (is_server) {
    SSL_CTX_set_psk_find_session_callback(context, find_session);
  } else {
    SSL_CTX_set_psk_use_session_callback(context, use_session);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER,
                       nullptr);  // no authority is known, so no certificate passes
  }
  return context;
}

}  // namespace

void SslFree::operator()(ssl_st* ssl) const {
  SSL_free(ssl);
}

void SslFree::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);
}

TlsContext::TlsContext(bool is_server, std::unique_ptr<Secrets> secrets)
    : is_server_(is_server),
      secrets_(std::move(secrets)),
      context_(make_context(is_server, secrets_.get())) {}

TlsContext::~TlsContext() = default;

std::unique_ptr<TlsContext> TlsContext::server(const Key& cluster_key,
                                               std::function<bool(std::string_view)> is_known) {
  return server([cluster_key,
                 is_known = std::move(is_known)](std::string_view identity) -> std::optional<Key> {
    const bool is_setup = is_setup_identity(identity);
    if (!is_setup && !base::is_host_name(identity)) return std::nullopt;
    if (!is_known(identity)) return std::nullopt;
    return is_setup ? derive_setup_key(cluster_key, identity)
                    : derive_node_key(cluster_key, identity);
  });
}

std::unique_ptr<TlsContext> TlsContext::server(KeyOf key_of) {
  auto secrets = std::make_unique<Secrets>(Secrets{std::move(key_of), {}, {}});
  return std::unique_ptr<TlsContext>(new TlsContext(true, std::move(secrets)));
}

std::unique_ptr<TlsContext> TlsContext::client(const Key& node_key, std::string identity) {
  auto secrets = std::make_unique<Secrets>(Secrets{{}, node_key, std::move(identity)});
  return std::unique_ptr<TlsContext>(new TlsContext(false, std::move(secrets)));
}

TlsStream::TlsStream(const TlsContext& context, int fd) : fd_(fd), ssl_(SSL_new(context.handle())) {
  SCORE_ASSERT(ssl_ != nullptr, "no TLS connection");
  BIO* bio = descriptor_bio(fd_);
  SSL_set_bio(ssl_.get(), bio, bio);
  if (context.is_server()) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
  }
}

TlsStream::~TlsStream() = default;

// OpenSSL reports errors through a queue of the thread, so the queue is emptied before every call
// and read after it.
IoStep TlsStream::step_of(int result) {
  if (result > 0) return {IoStep::Kind::Done, static_cast<std::size_t>(result), {}};
  int saved_errno = errno;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return {IoStep::Kind::WaitRead, 0, {}};
    case SSL_ERROR_WANT_WRITE:
      return {IoStep::Kind::WaitWrite, 0, {}};
    case SSL_ERROR_ZERO_RETURN:
      return {IoStep::Kind::End, 0, {}};
    case SSL_ERROR_SYSCALL:
      is_broken_ = true;
      if (saved_errno == 0) return {IoStep::Kind::End, 0, {}};
      return {IoStep::Kind::Failed, 0, base::errno_code(saved_errno)};
    default:
      is_broken_ = true;
      return {IoStep::Kind::Failed, 0, make_error_code(WireErrc::BadPeer)};
  }
}

IoStep TlsStream::handshake() {
  ERR_clear_error();
  errno = 0;
  IoStep step = step_of(SSL_do_handshake(ssl_.get()));
  if (step.kind != IoStep::Kind::Done) return step;
  if (SSL_session_reused(ssl_.get()) != 1) {  // completed, but not with the shared key
    is_broken_ = true;
    return {IoStep::Kind::Failed, 0, make_error_code(WireErrc::BadPeer)};
  }
  is_complete_ = true;
  return step;
}

IoStep TlsStream::read_some(std::span<char> into) {
  ERR_clear_error();
  errno = 0;
  std::size_t bytes = std::min<std::size_t>(into.size(), 1U << 30U);
  return step_of(SSL_read(ssl_.get(), into.data(), static_cast<int>(bytes)));
}

IoStep TlsStream::write_some(std::span<const std::string_view> parts) {
  ERR_clear_error();
  errno = 0;
  std::string_view first = parts[0];
  // Small parts are combined, so that frames queued together are sent in one record.
  thread_local std::array<char, kRecordBytes> record;
  if (parts.size() > 1 && first.size() < kRecordBytes) {
    std::size_t filled = 0;
    for (std::string_view part : parts) {
      std::size_t now = std::min(part.size(), record.size() - filled);
      std::memcpy(record.data() + filled, part.data(), now);
      filled += now;
    }
    first = std::string_view(record.data(), filled);
  }
  std::size_t bytes = std::min<std::size_t>(first.size(), 1U << 30U);
  return step_of(SSL_write(ssl_.get(), first.data(), static_cast<int>(bytes)));
}

void TlsStream::shut_down() {
  if (!is_complete_ || is_broken_) return;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

std::string TlsStream::peer_name() const {
  const auto* name = static_cast<std::string*>(SSL_get_ex_data(ssl_.get(), name_index()));
  return is_complete_ && name != nullptr ? *name : std::string();
}

}  // namespace score::proto
