#include "proto/transport/key_ring.hpp"

#include "base/text.hpp"
#include "base/text/hostlist.hpp"

#include <openssl/crypto.h>

#include <algorithm>

namespace score::proto {

using base::Errc;
using base::fail;

namespace {

std::string secret_of(const Key& cluster_key, base::AttemptId attempt, std::string_view node) {
  const Key secret = derive_key(cluster_key, fmt::format("scored attempt {} on {}", attempt, node));
  return {reinterpret_cast<const char*>(secret.bytes().data()), secret.bytes().size()};
}

}  // namespace

std::string format_node_identity(const NodeIdentity& identity) {
  if (identity.generation == 0) return identity.node;
  return fmt::format("{}#{}", identity.node, identity.generation);
}

std::optional<NodeIdentity> parse_node_identity(std::string_view text) {
  NodeIdentity identity;
  const auto mark = text.find('#');
  identity.node = text.substr(0, mark);
  if (!base::is_host_name(identity.node)) return std::nullopt;
  if (mark != text.npos) {
    const auto number = base::parse_number<std::uint64_t>(text.substr(mark + 1));
    if (!number) return std::nullopt;
    identity.generation = *number;
  }
  if (format_node_identity(identity) != text) return std::nullopt;
  return identity;
}

std::string format_head_identity(const HeadIdentity& identity) {
  return fmt::format("head:{}#{}", identity.head, identity.number);
}

std::optional<HeadIdentity> parse_head_identity(std::string_view text) {
  constexpr std::string_view kPrefix = "head:";
  const auto mark = text.find('#');
  if (!text.starts_with(kPrefix) || mark == text.npos) return std::nullopt;
  const auto head =
      base::parse_number<std::uint32_t>(text.substr(kPrefix.size(), mark - kPrefix.size()));
  const auto number = base::parse_number<std::uint64_t>(text.substr(mark + 1));
  if (!head || *head > 1 || !number) return std::nullopt;
  const HeadIdentity identity{*head, *number};
  if (format_head_identity(identity) != text) return std::nullopt;
  return identity;
}

std::string format_numbered_key(const NumberedKey& key) {
  std::string line = format_key(key.key);
  if (key.number != 0) line += fmt::format(" {}", key.number);
  return line;
}

base::Result<NumberedKey> parse_numbered_key(std::string_view line) {
  const auto blank = line.find(' ');
  const auto key = parse_key(line.substr(0, blank));
  if (!key) return key.error();
  NumberedKey numbered{*key, 0};
  if (blank == line.npos) return numbered;
  const auto number = base::parse_number<std::uint64_t>(line.substr(blank + 1));
  if (!number || *number == 0) return fail(Errc::Malformed, "no number after the key");
  numbered.number = *number;
  return numbered;
}

base::Result<NumberedKey> load_node_key(const std::string& path) {
  auto text = read_key_file(path);
  if (!text) return text.error();
  auto key = parse_numbered_key(*text);
  wipe(*text);
  if (!key) return key.error().with_context("key file {}", path);
  return key;
}

base::Result<KeyRing> KeyRing::parse(std::string_view text) {
  KeyRing ring;
  for (const std::string_view line : base::split(text, '\n')) {
    auto key = parse_numbered_key(line);
    if (!key) return key.error();
    const bool is_ascending = ring.keys_.empty() || ring.keys_.back().number < key->number;
    if (!is_ascending || ring.keys_.size() == kMostKeys) {
      return fail(Errc::Malformed, "the numbers of its keys do not ascend, or it has more than {}",
                  kMostKeys);
    }
    ring.keys_.push_back(*key);
  }
  return ring;
}

base::Result<KeyRing> KeyRing::load(const std::string& path) {
  auto text = read_key_file(path);
  if (!text) return text.error();
  auto ring = parse(*text);
  wipe(*text);
  if (!ring) return ring.error().with_context("key file {}", path);
  return ring;
}

base::Result<void> check_key_file(const std::string& path) {
  const auto ring = KeyRing::load(path);
  const bool is_unknown = !ring && (ring.error().is(std::errc::no_such_file_or_directory) ||
                                    ring.error().is(std::errc::permission_denied));
  if (ring || is_unknown) return {};
  return ring.error();
}

std::string KeyRing::format() const {
  std::string text;
  for (const NumberedKey& key : keys_) text += format_numbered_key(key) + "\n";
  return text;
}

std::optional<Key> KeyRing::node_key(const NodeIdentity& identity) const {
  const auto after = std::ranges::upper_bound(keys_, identity.generation, {}, &NumberedKey::number);
  if (after == keys_.begin()) return std::nullopt;
  return derive_node_key(std::prev(after)->key, format_node_identity(identity));
}

std::optional<Key> KeyRing::head_key(const HeadIdentity& identity) const {
  const auto key = std::ranges::find(keys_, identity.number, &NumberedKey::number);
  if (key == keys_.end()) return std::nullopt;
  return derive_key(key->key, "scored " + format_head_identity(identity));
}

bool KeyRing::has_key(const std::function<bool(const Key&)>& matches) const {
  return std::ranges::any_of(keys_, [&](const NumberedKey& key) { return matches(key.key); });
}

bool KeyRing::is_head_proof(base::Epoch incarnation, std::string_view proof) const {
  return has_key([&](const Key& key) { return proto::is_head_proof(key, incarnation, proof); });
}

bool KeyRing::is_job_proof(base::JobId job, std::string_view proof) const {
  return std::ranges::any_of(
      keys_, [&](const NumberedKey& key) { return proto::is_job_proof(key.key, job, proof); });
}

std::string KeyRing::attempt_secret(base::AttemptId attempt, std::string_view node) const {
  return secret_of(newest().key, attempt, node);
}

bool KeyRing::is_attempt_secret(base::AttemptId attempt, std::string_view node,
                                std::string_view secret) const {
  return std::ranges::any_of(keys_, [&](const NumberedKey& key) {
    const std::string wanted = secret_of(key.key, attempt, node);
    return secret.size() == wanted.size() &&
           CRYPTO_memcmp(secret.data(), wanted.data(), wanted.size()) == 0;
  });
}

base::Result<void> KeyRing::rotate(std::uint64_t now_s) {
  if (keys_.size() == kMostKeys) return fail(Errc::TooLarge, "it has {} keys already", kMostKeys);
  keys_.push_back({random_key(), std::max(now_s, newest().number + 1)});
  return {};
}

}  // namespace score::proto
