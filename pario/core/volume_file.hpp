// The description of a volume: a text file that only its owner may read, since it has the key.
//
//   # any comment
//   name scratch-7
//   key 00112233445566778899aabbccddeeff
//   stripe 1048576
//   server node1:7711
//   server node2:7711
#pragma once

#include "pario/core/message.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace score::pario {

struct ServerAddress {
  std::string host;
  std::string port;  // decimal
};

struct VolumeDescription {
  std::string name;  // 1 to 64 of A-Z a-z 0-9 . _ -
  Key key{};
  std::uint64_t stripe = std::uint64_t{1} << 20;
  std::vector<ServerAddress> servers;
};

inline constexpr std::size_t kMaxVolumeFileBytes = std::size_t{1} << 20;

// False: `message` says what is wrong, with the number of the line.
bool parse_volume(std::string_view text, VolumeDescription& volume, std::string& message);

// Reads and parses; refuses a file that is not a regular one, or that its group or others may
// read. Returns an errno value; `message` then has the path.
int read_volume(const std::string& path, VolumeDescription& volume, std::string& message);

}  // namespace score::pario
