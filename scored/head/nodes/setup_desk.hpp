#pragma once
// Gives each new node its key, for a setup token. Which tokens were used is stored, so that a
// restart of the head makes none of them valid again. Thread: the loop's.

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

// Whether the text is the identity of a token for a node of this cluster that has not expired, and
// does not last longer than tokens do. It may have been used.
[[nodiscard]] bool is_valid_token(const HeadConfig& config, std::string_view identity,
                                  WallTime now);

class SetupDesk {
 public:
  // config, ring and keys must outlive it. used_file: the identities of used tokens that have not
  // expired, one per line. It is read; a line that is no identity is dropped.
  SetupDesk(const HeadConfig& config, const proto::KeyRing& ring, const NodeKeys& keys,
            std::string used_file);

  // Called with the new text of used_file at each change, when it is on disk.
  void on_used(std::function<void(const std::string& text)> then) { on_used_ = std::move(then); }

  // The key of a token that may connect; any text may be given.
  [[nodiscard]] std::optional<proto::Key> key_of(std::string_view identity, WallTime now) const;
  // Whether a token with this identity may connect: of a node of this cluster, neither used nor
  // expired, and not valid for longer than a token lasts.
  [[nodiscard]] bool admits(std::string_view identity, WallTime now) const;
  // On disk when it returns. Errors: Exists (it was used meanwhile), errno codes.
  [[nodiscard]] Status use(const std::string& identity, WallTime now);

  // One proven connection: hello, offer, key. `identity` is admitted already. clock must outlive
  // it.
  asio::awaitable<void> serve(std::string identity, std::shared_ptr<proto::Connection> connection,
                              Clock& clock);

 private:
  [[nodiscard]] wire::SetupOffer offer(const std::string& node) const;

  const HeadConfig& config_;
  const proto::KeyRing& ring_;
  const NodeKeys& keys_;
  std::string used_file_;
  std::function<void(const std::string&)> on_used_;
  std::map<std::string, std::int64_t, std::less<>> used_;  // identity: when it expires, Unix time
};

}  // namespace score::head
