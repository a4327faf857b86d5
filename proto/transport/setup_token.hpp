// A setup token lets one host fetch the key of its node from the head, once. Its secret is a
// pre-shared key of TLS 1.3. The handshake proves the token to the head and the head to the holder
// of the token, so no certificate or fingerprint is needed.
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
  std::string node;            // the node whose key it fetches
  std::int64_t expires_s = 0;  // Unix time by the head's clock
  std::uint64_t number = 0;    // random; the head accepts each number once

  friend bool operator==(const SetupToken&, const SetupToken&) = default;
};

SetupToken new_setup_token(std::string node, base::WallTime now);

// Returns "setup:NODE:EXPIRES:NUMBER", the identity in the handshake; no node name has a colon. The
// identity and the cluster key determine if a token is valid, so the head need not remember the
// tokens that it made.
std::string setup_identity(const SetupToken& token);
bool is_setup_identity(std::string_view identity);
// Accepts only the spelling of setup_identity(). Errors: Malformed.
base::Result<SetupToken> parse_setup_identity(std::string_view identity);

// Derives the key of a token: HKDF-SHA256, no salt, info = "scored " + identity.
Key derive_setup_key(const Key& cluster_key, std::string_view identity);

struct SetupSecret {
  SetupToken token;
  Key key;
};

// Returns the text that the administrator copies: "NODE:EXPIRES:NUMBER:KEY", numbers and key in
// hexadecimal digits.
std::string format_setup_secret(const SetupSecret& secret);
// Parses that text. Errors: Malformed.
base::Result<SetupSecret> parse_setup_secret(std::string_view text);

}  // namespace score::proto
