// The description of a volume is a text file that only its owner may read, because it contains the
// key.
//
//   # any comment
//   name scratch-7
//   key 00112233445566778899aabbccddeeff
//   stripe 1048576
//   server node1:7711
//   server node2:7711
//   replicas 2             (optional: each part is on two servers)
//   size 107374182400      (optional: bytes of the whole volume)
//   expires 1790000000     (optional: seconds since 1970)
//   owner anna             (optional, for users)
//   directory /data/pario  (optional: where `scio start` starts its servers)
//   layout local           (optional: each file is on one server, that of the node that makes it)
//   wait 10                (optional: seconds to wait for a server that does not answer)
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

// Selects how data is sent. Usual: through the data files on a node, otherwise over TCP. Nodes: as
// Usual, but between nodes by PM over UDP. Pm: by PM everywhere. Udp: by PM over UDP, also on a
// node.
enum class Transport { Usual, Nodes, Pm, Udp, Tcp };

struct VolumeDescription {
  std::string name;  // 1 to 64 of A-Z a-z 0-9 . _ -
  Key key{};
  std::uint64_t stripe = std::uint64_t{1} << 20;
  std::vector<ServerAddress> servers;
  std::uint32_t replicas = 1;  // 1 or 2
  std::uint64_t size = 0;      // 0: not limited
  std::int64_t expires_s = 0;  // wall time; 0: never
  std::string owner;
  std::string directory;
  Transport transport = Transport::Usual;  // Usual or Nodes
  bool is_local = false;                   // the layout of the root directory; see kLocalBit
  // A request fails if its server cannot be reached for so long. With replicas it is 10.
  std::uint32_t wait_s = 1;
};

// One replica of a part is on the server of the part's number; the other one is on the next server.
inline std::uint32_t copy_server(std::uint32_t part, std::size_t servers) {
  return static_cast<std::uint32_t>((part + 1) % servers);
}

// Returns the capacity of one server's own data, derived from the size of the volume; 0: not
// limited.
std::uint64_t capacity_of(const VolumeDescription& volume);

inline constexpr std::size_t kMaxVolumeFileBytes = std::size_t{1} << 20;

// Returns false on an error; `message` then describes it, with the number of the line.
bool parse_volume(std::string_view text, VolumeDescription& volume, std::string& message);

// Returns the folder of the descriptions of the user's named volumes; empty if there is no home
// directory.
std::string volume_folder();
// Returns the file that a user means: `name` itself, or the description of the volume of that name.
std::string volume_path(const std::string& name);

// Reads and parses volume_path(path), or for "-" the standard input. Refuses a file that is not a
// regular one, or that its group or others may read. Returns an errno value; `message` then
// contains the path.
int read_volume(const std::string& path, VolumeDescription& volume, std::string& message);

}  // namespace score::pario
