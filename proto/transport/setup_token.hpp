// A token with which one host fetches the key of its node from the head, once. Its secret is a
// pre-shared key of TLS 1.3: the handshake proves the token to the head and the head to its holder,
// so no certificate or fingerprint is needed besides.
#pragma once

#include "base/result.hpp"
#include "base/time.hpp"
#include "proto/transport/key.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace score::proto {

inline constexpr base::Duration kSetupLifetime = std::chrono::hours(1);

struct SetupToken {
  std::string node;            // which node's key it fetches
  std::int64_t expires_s = 0;  // Unix time by the head's clock
  std::uint64_t number = 0;    // random: the head admits each once

  friend bool operator==(const SetupToken&, const SetupToken&) = default;
};

SetupToken new_setup_token(std::string node, base::WallTime now);

// "setup:NODE:EXPIRES:NUMBER", the identity in the handshake; no node name has a colon. Whether a
// token is valid follows from its identity and the cluster key, so the head need not know which
// tokens were made.
std::string setup_identity(const SetupToken& token);
bool is_setup_identity(std::string_view identity);
// Errors: Malformed; only the spelling of setup_identity() is accepted.
base::Result<SetupToken> parse_setup_identity(std::string_view identity);

// HKDF-SHA256, no salt, info = "scored " + identity.
Key derive_setup_key(const Key& cluster_key, std::string_view identity);

struct SetupSecret {
  SetupToken token;
  Key key;
};

// What the administrator copies: "NODE:EXPIRES:NUMBER:KEY", numbers and key in hexadecimal digits.
std::string format_setup_secret(const SetupSecret& secret);
// Errors: Malformed.
base::Result<SetupSecret> parse_setup_secret(std::string_view text);

}  // namespace score::proto
