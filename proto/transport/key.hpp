// Provides the keys of a cluster. The head holds the cluster key. Every node holds only its own
// key, derived from the cluster key and the node's name, so that a node cannot impersonate a
// different node.
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace score::proto {

inline constexpr std::size_t kKeyBytes = 32;

// A Key is 32 secret bytes. It is wiped when it goes out of scope.
class Key {
 public:
  Key() = default;

  explicit Key(const std::array<std::uint8_t, kKeyBytes>& bytes) : bytes_(bytes) {}

  Key(const Key&) = default;
  Key& operator=(const Key&) = default;
  ~Key();

  const std::array<std::uint8_t, kKeyBytes>& bytes() const { return bytes_; }

  friend bool operator==(const Key&, const Key&) = default;

 private:
  std::array<std::uint8_t, kKeyBytes> bytes_{};
};

// Derives the key of a node: HKDF-SHA256 (RFC 5869), no salt, info = "scored node " + name.
Key derive_node_key(const Key& cluster_key, std::string_view node_name);

// Returns a proof that the cluster had a head of this incarnation: 32 bytes that cannot be made
// without the cluster key. Nodes keep the newest proof. A head that receives the proof of a later
// head ends.
std::string prove_head(const Key& cluster_key, base::Epoch incarnation);
bool is_head_proof(const Key& cluster_key, base::Epoch incarnation, std::string_view proof);

// Returns a proof that the cluster gave this number to a job: 32 bytes, made like those above. A
// node gets it with the job, so that it can raise the job numbers of a head with an older database.
std::string prove_job(const Key& cluster_key, base::JobId job);
bool is_job_proof(const Key& cluster_key, base::JobId job, std::string_view proof);

// Derives any key that follows from the cluster key: HKDF-SHA256 (RFC 5869), no salt, with this
// info.
Key derive_key(const Key& cluster_key, std::string info);

// Returns the SHA-256 hash.
using Digest = std::array<std::uint8_t, 32>;
Digest digest_of(std::string_view bytes);

// Returns a key from the kernel's random source.
Key random_key();

// The text of a key is 64 hexadecimal digits. Errors of parse_key: Malformed.
std::string format_key(const Key& key);
base::Result<Key> parse_key(std::string_view text);

// Returns the text of a key file without its last line end, at most kMostKeyFileBytes. The file
// must belong to us or to root, or to a daemon user if we are root, and must be closed to group and
// others (0600 or 0400), else Denied. Any other content is Malformed. A symbolic link is rejected.
base::Result<std::string> read_key_file(const std::string& path);
inline constexpr std::size_t kMostKeyFileBytes = 1024;
void wipe(std::string& secret);

// Creates the file with mode 0600. Errors: Exists if it is there. The text is on disk when it
// returns.
base::Result<void> store_key_file(const std::string& path, std::string_view text);
base::Result<void> store_key(const std::string& path, const Key& key);

}  // namespace score::proto
