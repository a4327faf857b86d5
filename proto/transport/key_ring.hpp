// Keys can be replaced while the cluster runs (docs/adr/0079). A node key has a generation, a
// number that increases; the node shows it in the handshake. The head's key file holds one cluster
// key, or several while the cluster key is being replaced. Each derives the node keys from a
// certain generation on.
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "proto/transport/key.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::proto {

struct NodeIdentity {
  std::string node;
  std::uint64_t generation = 0;  // 0: the first key of the node

  friend bool operator==(const NodeIdentity&, const NodeIdentity&) = default;
};

// Returns the identity in the handshake: "node03", or "node03#1795460469"; no node name has a '#'.
std::string format_node_identity(const NodeIdentity& identity);
// Accepts only the spelling of format_node_identity().
std::optional<NodeIdentity> parse_node_identity(std::string_view text);

// HeadIdentity identifies a head to the other head of the cluster: "head:1#1795460469". It has the
// head's place in `heads` and the number of the cluster key that it proves to have. No node name
// has a colon.
struct HeadIdentity {
  std::uint32_t head = 0;    // 0 or 1
  std::uint64_t number = 0;  // of the newest key of its key file

  friend bool operator==(const HeadIdentity&, const HeadIdentity&) = default;
};

std::string format_head_identity(const HeadIdentity& identity);
// Accepts only the spelling of format_head_identity().
std::optional<HeadIdentity> parse_head_identity(std::string_view text);

struct NumberedKey {
  Key key;
  std::uint64_t number = 0;
};

// A line of a key file has 64 hexadecimal digits, and a number if it is not 0. Errors: Malformed.
std::string format_numbered_key(const NumberedKey& key);
base::Result<NumberedKey> parse_numbered_key(std::string_view line);

// Loads the key file of a node: its key and generation. Errors: see read_key_file().
base::Result<NumberedKey> load_node_key(const std::string& path);

class KeyRing {
 public:
  static constexpr std::size_t kMostKeys = 8;

  explicit KeyRing(const Key& only) : keys_{{only, 0}} {}

  // Parses one key per line, numbers ascending. The number is the least generation that the key
  // derives. Errors: Malformed.
  static base::Result<KeyRing> parse(std::string_view text);
  // Loads the key file of a head. Errors: those of parse() and of read_key_file().
  static base::Result<KeyRing> load(const std::string& path);
  [[nodiscard]] std::string format() const;

  [[nodiscard]] const NumberedKey& newest() const { return keys_.back(); }

  [[nodiscard]] std::size_t size() const { return keys_.size(); }

  // Returns nullopt for a generation whose cluster key was retired.
  [[nodiscard]] std::optional<Key> node_key(const NodeIdentity& identity) const;
  // Returns nullopt if this file has no key of that number.
  [[nodiscard]] std::optional<Key> head_key(const HeadIdentity& identity) const;
  // Returns true if `matches` does for one of the cluster keys.
  [[nodiscard]] bool has_key(const std::function<bool(const Key&)>& matches) const;
  [[nodiscard]] bool is_head_proof(base::Epoch incarnation, std::string_view proof) const;
  [[nodiscard]] bool is_job_proof(base::JobId job, std::string_view proof) const;

  // Returns the 32 bytes by which a node proves that it has tasks of this attempt. They cannot be
  // made without the cluster key, and a different node has others.
  [[nodiscard]] std::string attempt_secret(base::AttemptId attempt, std::string_view node) const;
  [[nodiscard]] bool is_attempt_secret(base::AttemptId attempt, std::string_view node,
                                       std::string_view secret) const;

  // Adds a random cluster key for generations from `now_s` (Unix time) on, or from the first one
  // that no key has yet. Errors: TooLarge (kMostKeys).
  base::Result<void> rotate(std::uint64_t now_s);

  // Removes all keys but the newest, so that older node keys are rejected.
  void retire() { keys_.erase(keys_.begin(), keys_.end() - 1); }

 private:
  KeyRing() = default;

  std::vector<NumberedKey> keys_;  // ascending by number; never empty
};

// Checks the key file of a head or node for --check-config. Errors: those of load(), except that a
// file that is missing, or that this user may not read, is no error.
base::Result<void> check_key_file(const std::string& path);

}  // namespace score::proto
