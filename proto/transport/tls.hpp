// Implements TLS 1.3 with external pre-shared keys and nothing else: no certificates, no tickets,
// no older version, one cipher. The identity in the handshake is the node's name. The handshake
// proves, in both directions, that the peer holds the key of that name.
#pragma once

#include "proto/transport/byte_stream.hpp"
#include "proto/transport/key.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct ssl_st;
struct ssl_ctx_st;

namespace score::proto {

struct SslFree {
  void operator()(ssl_st* ssl) const;
  void operator()(ssl_ctx_st* context) const;
};

// One TlsContext serves all connections of a listener, or of a node. It is immovable, because
// OpenSSL's callbacks point to it, and it must outlive every TlsStream made from it.
class TlsContext {
 public:
  // Makes the context of a head; the key of each name is derived. `is_known` decides which names
  // may connect. It is called during each handshake, with text from an unproven peer (already a
  // valid node name, or the identity of a setup token, whose key is derived too).
  static std::unique_ptr<TlsContext> server(const Key& cluster_key,
                                            std::function<bool(std::string_view)> is_known);
  // Makes the context of a head; `key_of` returns the key of an identity, or none if it may not
  // connect. It is called during each handshake, with any text from an unproven peer.
  using KeyOf = std::function<std::optional<Key>(std::string_view identity)>;
  static std::unique_ptr<TlsContext> server(KeyOf key_of);
  // Makes the context of a node. `identity` is described at format_node_identity().
  static std::unique_ptr<TlsContext> client(const Key& node_key, std::string identity);

  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  struct Secrets;  // data for the callbacks

  ssl_ctx_st* handle() const { return context_.get(); }

  bool is_server() const { return is_server_; }

  ~TlsContext();

 private:
  TlsContext(bool is_server, std::unique_ptr<Secrets> secrets);

  bool is_server_;
  std::unique_ptr<Secrets> secrets_;
  std::unique_ptr<ssl_ctx_st, SslFree> context_;
};

class TlsStream final : public ByteStream {
 public:
  TlsStream(const TlsContext& context, int fd);
  ~TlsStream() override;

  IoStep handshake() override;
  IoStep read_some(std::span<char> into) override;
  IoStep write_some(std::span<const std::string_view> parts) override;
  void shut_down() override;

  // Returns the proven identity of the node, or of the setup token, at the other end. It is empty
  // on the node's own side and before the handshake is complete.
  std::string peer_name() const;

 private:
  IoStep step_of(int result);

  int fd_;
  bool is_complete_ = false;
  bool is_broken_ = false;
  std::unique_ptr<ssl_st, SslFree> ssl_;
};

}  // namespace score::proto
