// The address of a provider's endpoint, as fi_getname() returns it and fi_av_insert() accepts it.
//
// Inside a job of scored or of an address file a peer is a rank, and the name says which job it
// belongs to without revealing the job's key. Elsewhere an endpoint has a UDP socket of its own,
// and its name contains all that is needed to reach it, including the key: any process that has the
// name may send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace score::pm::fi {

enum class NameKind : std::uint8_t { Job = 1, Udp = 2 };

struct Name {
  std::uint32_t magic = kMagic;
  NameKind kind = NameKind::Job;
  std::uint8_t reserved = 0;
  std::uint16_t port = 0;      // the endpoint within the process
  std::uint64_t key = 0;       // job: mark of the job; UDP: key of the socket
  std::uint32_t rank = 0;      // job
  std::uint32_t ip = 0;        // UDP, network order
  std::uint16_t udp_port = 0;  // UDP, network order
  std::uint16_t payload = 0;   // UDP: maximum bytes of a frame's payload
  std::uint32_t reserved2 = 0;

  static constexpr std::uint32_t kMagic = 0x314e4d50;  // "PMN1"

  // Returns true if the name suffices to reach a peer. The own address of a process that has not
  // opened a domain yet does not.
  bool is_whole() const {
    return key != 0 && (kind == NameKind::Job || (ip != 0 && udp_port != 0));
  }

  bool operator==(const Name&) const = default;
};

static_assert(sizeof(Name) == 32);

// Returns false if `bytes`, which may be null, are not a name.
bool read_name(const void* bytes, Name& name);

// Formats a name as "pm://10.0.0.1:4000/0" or "pm://rank:3/0".
std::string to_string(const Name& name);

// Formats a name with its key, as FI_ADDR_STR requires:
// "fi_pm://10.0.0.1:4000/0?key=1f&payload=1424", "fi_pm://rank:3/0?key=1f".
std::string to_address(const Name& name);
// Returns false if `text` is not such an address.
bool parse_name(std::string_view text, Name& name);

// Returns a one-way hash of a job's key, which may be shown to other users.
std::uint64_t mark_of(std::uint64_t key, std::uint32_t generation, std::uint16_t channel);

}  // namespace score::pm::fi
