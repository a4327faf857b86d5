#pragma once
// SetupManager gives each new node its key in exchange for a setup token. Used tokens are stored,
// so none becomes valid again after a restart of the head. Thread: the loop's.

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/time.hpp"
#include "proto/node.pb.h"
#include "proto/transport/connection.hpp"
#include "proto/transport/key_ring.hpp"
#include "scored/head/cluster/answer_channel.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/nodes/node_keys.hpp"
#include "scored/head/store/logged_file.hpp"

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
  struct Parts {  // all must outlive the object
    const HeadConfig& config;
    const proto::KeyRing& ring;
    const NodeKeys& keys;
    CommitLog& commits;
    const LeaseCheck& lease;
  };

  // `directory` has the file of the identities of used tokens that have not expired, one per line.
  // The constructor reads it and drops lines that are not identities.
  SetupManager(Parts parts, const std::string& directory);

  // Returns the key of a token that may connect; `identity` may be any text.
  [[nodiscard]] std::optional<proto::Key> key_of(std::string_view identity, WallTime now) const;
  // Returns true if a token with this identity may connect. It must be for a node of this cluster,
  // neither used nor expired, and must not last longer than tokens may.
  [[nodiscard]] bool admits(std::string_view identity, WallTime now) const;
  // Records the token as used; `done` has the log's receipt. Errors: Exists (it has been used in
  // the meantime), and those of LoggedFile.
  void use(const std::string& identity, WallTime now, CommitLog::Confirmed done);

  // Serves one proven connection: hello, offer, key. The caller has admitted `identity`; `clock`
  // must outlive the call.
  asio::awaitable<void> serve(std::string identity, std::shared_ptr<proto::Connection> connection,
                              Clock& clock);

 private:
  using Expiries = std::map<std::string, std::int64_t, std::less<>>;  // in Unix time, by identity

  [[nodiscard]] wire::SetupOffer offer(const std::string& node) const;
  asio::awaitable<Result<LogReceipt>> use_up(std::string identity);
  asio::awaitable<void> give_key(std::string identity, AnswerChannel answers);

  Parts parts_;
  LoggedFile file_;
  Expiries used_;
};

}  // namespace score::head
