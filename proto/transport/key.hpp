// Keys of a cluster. The head holds the cluster key; every node holds only its own, derived from it
// and the node's name, so that a node cannot speak for another.
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

// 32 secret bytes; wiped when it goes out of scope.
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

// HKDF-SHA256 (RFC 5869), no salt, info = "scored node " + name.
Key derive_node_key(const Key& cluster_key, std::string_view node_name);

// Shows that the cluster had a head of this incarnation: 32 bytes that cannot be made without the
// cluster key. Nodes keep the newest; a head that is shown one of a later head than itself ends.
std::string prove_head(const Key& cluster_key, base::Epoch incarnation);
bool is_head_proof(const Key& cluster_key, base::Epoch incarnation, std::string_view proof);

// HKDF-SHA256 (RFC 5869), no salt, with this info: every key that a cluster key stands for.
Key derive_key(const Key& cluster_key, std::string info);

// From the kernel's random source.
Key random_key();

// 64 hexadecimal digits. Error of parse_key: Malformed.
std::string format_key(const Key& key);
base::Result<Key> parse_key(std::string_view text);

// The text of a key file without its last line end, at most kMostKeyFileBytes. The file must belong
// to us or to root, or to the user
// scored if we are root, and be closed to group and others (0600 or 0400), else Denied; anything
// else in it: Malformed. A symbolic link is refused.
base::Result<std::string> read_key_file(const std::string& path);
inline constexpr std::size_t kMostKeyFileBytes = 1024;
void wipe(std::string& secret);

// A key file of 64 hexadecimal digits. Errors: see read_key_file().
base::Result<Key> load_key(const std::string& path);
// Makes the file, mode 0600; Exists if it is there. The text is on disk when it returns.
base::Result<void> store_key_file(const std::string& path, std::string_view text);
base::Result<void> store_key(const std::string& path, const Key& key);

}  // namespace score::proto
