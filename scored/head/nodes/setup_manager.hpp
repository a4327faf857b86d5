#pragma once
// SetupManager gives each new node its key in exchange for a setup token. Used tokens are stored,
// so none becomes valid again after a restart of the head. Thread: the loop's.

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/time.hpp"
#include "proto/node.pb.h"
#include "proto/transport/connection.hpp"
#include "proto/transport/key_ring.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/nodes/node_keys.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace score::head {

// Returns true if the text is the identity of an unexpired token for a node of this cluster that
// does not last longer than tokens may. The token may have been used.
[[nodiscard]] bool is_valid_token(const HeadConfig& config, std::string_view identity,
                                  WallTime now);

class SetupManager {
 public:
  // `config`, `ring` and `keys` must outlive this object. The file `used_file` has the identities
  // of used tokens that have not expired, one per line. The constructor reads it and drops lines
  // that are not identities.
  SetupManager(const HeadConfig& config, const proto::KeyRing& ring, const NodeKeys& keys,
               std::string used_file);

  // The handler is called at each change, when the new text of used_file is on disk.
  void on_used(std::function<void(const std::string& text)> then) { on_used_ = std::move(then); }

  // Returns the key of a token that may connect; `identity` may be any text.
  [[nodiscard]] std::optional<proto::Key> key_of(std::string_view identity, WallTime now) const;
  // Returns true if a token with this identity may connect. It must be for a node of this cluster,
  // neither used nor expired, and must not last longer than tokens may.
  [[nodiscard]] bool admits(std::string_view identity, WallTime now) const;
  // The token is recorded as used on disk when this returns. Errors: Exists (it has been used in
  // the meantime), errno codes.
  [[nodiscard]] Status use(const std::string& identity, WallTime now);

  // Serves one proven connection: hello, offer, key. The caller has admitted `identity`; `clock`
  // must outlive the call.
  asio::awaitable<void> serve(std::string identity, std::shared_ptr<proto::Connection> connection,
                              Clock& clock);

 private:
  [[nodiscard]] wire::SetupOffer offer(const std::string& node) const;

  const HeadConfig& config_;
  const proto::KeyRing& ring_;
  const NodeKeys& keys_;
  std::string used_file_;
  std::function<void(const std::string&)> on_used_;
  std::map<std::string, std::int64_t, std::less<>> used_;  // identity and its expiry, in Unix time
};

}  // namespace score::head
