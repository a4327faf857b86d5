#include "proto/transport/setup_token.hpp"

#include "base/text.hpp"
#include "base/text/hostlist.hpp"

#include <charconv>

namespace score::proto {
namespace {

constexpr std::string_view kPrefix = "setup:";
constexpr std::size_t kNumberDigits = 16;

std::string token_text(const SetupToken& token) {
  return fmt::format("{}:{:016x}:{:016x}", token.node, static_cast<std::uint64_t>(token.expires_s),
                     token.number);
}

bool parse_hex(std::string_view text, std::uint64_t& number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return text.size() == kNumberDigits && error == std::errc() && stop == text.data() + text.size();
}

base::Result<SetupToken> parse_token(std::string_view text) {
  const auto parts = base::split(text, ':');
  SetupToken token;
  std::uint64_t expires = 0;
  if (parts.size() != 3 || !base::is_host_name(parts[0]) || !parse_hex(parts[1], expires) ||
      !parse_hex(parts[2], token.number) || expires > std::uint64_t{INT64_MAX}) {
    return base::fail(base::Errc::Malformed, "not a setup token");
  }
  token.node = parts[0];
  token.expires_s = static_cast<std::int64_t>(expires);
  if (token_text(token) != text) return base::fail(base::Errc::Malformed, "not a setup token");
  return token;
}

}  // namespace

SetupToken new_setup_token(std::string node, base::WallTime now) {
  SetupToken token;
  token.node = std::move(node);
  const auto expires = (now + kSetupLifetime).time_since_epoch();
  token.expires_s = std::chrono::duration_cast<std::chrono::seconds>(expires).count();
  const Key random = random_key();
  for (const std::uint8_t byte : random.bytes()) token.number = token.number << 8U ^ byte;
  return token;
}

std::string setup_identity(const SetupToken& token) {
  return std::string(kPrefix) + token_text(token);
}

bool is_setup_identity(std::string_view identity) {
  return parse_setup_identity(identity).has_value();
}

base::Result<SetupToken> parse_setup_identity(std::string_view identity) {
  if (!identity.starts_with(kPrefix)) {
    return base::fail(base::Errc::Malformed, "not the identity of a setup token");
  }
  return parse_token(identity.substr(kPrefix.size()));
}

Key derive_setup_key(const Key& cluster_key, std::string_view identity) {
  return derive_key(cluster_key, fmt::format("scored {}", identity));
}

std::string format_setup_secret(const SetupSecret& secret) {
  return token_text(secret.token) + ":" + format_key(secret.key);
}

base::Result<SetupSecret> parse_setup_secret(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return base::fail(base::Errc::Malformed, "not a setup token");
  }
  auto token = parse_token(text.substr(0, colon));
  if (!token) return token.error();
  auto key = parse_key(text.substr(colon + 1));
  if (!key) return key.error();
  return SetupSecret{*std::move(token), *key};
}

}  // namespace score::proto
