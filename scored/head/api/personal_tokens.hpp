#pragma once
// PersonalTokens has the tokens by which programs of users reach the API over the network
// (docs/adr/0124). Only hashes are stored. A token is in force, and answered, when the log has it.
// Thread: the loop's.

#include "base/time.hpp"
#include "proto/client.pb.h"
#include "proto/transport/key.hpp"
#include "scored/head/config/users.hpp"
#include "scored/head/store/logged_file.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace score::head {

struct PersonalToken {
  UserId user;
  std::string name;  // of lower-case letters, digits, '-', '_' and '.'
  WallTime expires{};
  bool only_reads = false;
  proto::Digest hash{};  // of the secret
};

class PersonalTokens {
 public:
  static constexpr Duration kLongestLife = 24h * 366;
  static constexpr std::size_t kMostNameBytes = 32;

  // Receives the user's tokens with the log's receipt, or the error; called once.
  using Reply = std::function<void(const Result<Logged<wire::TokenList>>&)>;

  // `directory` has the file of the tokens, which the constructor reads; lines that are not tokens
  // are dropped. `commits` must outlive the object.
  PersonalTokens(CommitLog& commits, const std::string& directory);

  // Makes, lists or revokes tokens of the peer. Errors: Malformed, NotFound, Busy (too many), and
  // those of LoggedFile; after an error nothing has changed.
  void execute(const Peer& peer, const wire::ManageTokens& command, WallTime now,
               const Reply& reply);
  // Returns the valid token with this text, which may be any text.
  [[nodiscard]] const PersonalToken* find(std::string_view text, WallTime now) const;

 private:
  using Tokens = std::map<std::uint64_t, PersonalToken>;  // by number

  Result<std::string> add(Tokens& tokens, UserId user, const wire::ManageTokens& command,
                          WallTime now) const;
  [[nodiscard]] wire::TokenList list_of(UserId user, WallTime now) const;

  CommitLog& commits_;
  LoggedFile file_;
  Tokens tokens_;
};

}  // namespace score::head
