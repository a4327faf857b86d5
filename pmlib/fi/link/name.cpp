#include "pmlib/fi/link/name.hpp"

#include <arpa/inet.h>
#include <array>
#include <cstring>

namespace score::pm::fi {

bool read_name(const void* bytes, Name& name) {
  std::memcpy(&name, bytes, sizeof name);
  return name.magic == Name::kMagic && (name.kind == NameKind::Job || name.kind == NameKind::Udp) &&
         name.reserved == 0;
}

std::string to_string(const Name& name) {
  const std::string port = "/" + std::to_string(name.port);
  if (name.kind == NameKind::Job) return "pm://rank:" + std::to_string(name.rank) + port;
  std::array<char, INET_ADDRSTRLEN> ip{};
  inet_ntop(AF_INET, &name.ip, ip.data(), ip.size());
  return "pm://" + std::string(ip.data()) + ":" + std::to_string(ntohs(name.udp_port)) + port;
}

// SplitMix64's finalizer over both halves, with half of the result thrown away: 32 bits of 96
// cannot be turned back into the key.
std::uint64_t mark_of(std::uint64_t key, std::uint32_t generation, std::uint16_t channel) {
  std::uint64_t x = key ^ (std::uint64_t{generation} << 16 | channel) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
  return x >> 32 | 1;
}

}  // namespace score::pm::fi
