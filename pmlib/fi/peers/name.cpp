#include "pmlib/fi/peers/name.hpp"

#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <cstring>

namespace score::pm::fi {

namespace {

constexpr std::string_view kScheme = "fi_";  // prefix of the text of to_string()
constexpr std::string_view kBegin = "fi_pm://";
constexpr std::string_view kRank = "rank:";

// Removes `prefix` from the front of `text`; returns false if it is not there.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Reads a number from the front of `text` and removes it.
template <class T>
bool take_number(std::string_view& text, T& number, int base = 10) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (failed != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// Reads an address and a port, as in "10.0.0.1:4000".
bool take_socket(std::string_view& text, Name& name) {
  const std::string ip(text.substr(0, text.find(':')));
  in_addr address{};
  std::uint16_t port = 0;
  if (inet_pton(AF_INET, ip.c_str(), &address) != 1) return false;
  text.remove_prefix(ip.size());
  if (!take(text, ":") || !take_number(text, port)) return false;
  name.ip = address.s_addr;
  name.udp_port = htons(port);
  return true;
}

}  // namespace

bool read_name(const void* bytes, Name& name) {
  if (bytes == nullptr) return false;
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

std::string to_address(const Name& name) {
  std::array<char, 17> key{};
  std::to_chars(key.data(), key.data() + key.size() - 1, name.key, 16);
  std::string text = std::string(kScheme) + to_string(name) + "?key=" + key.data();
  if (name.kind == NameKind::Udp) text += "&payload=" + std::to_string(name.payload);
  return text;
}

bool parse_name(std::string_view text, Name& name) {
  Name parsed;
  if (!take(text, kBegin)) return false;
  parsed.kind = take(text, kRank) ? NameKind::Job : NameKind::Udp;
  const bool is_udp = parsed.kind == NameKind::Udp;
  if (is_udp ? !take_socket(text, parsed) : !take_number(text, parsed.rank)) return false;
  if (!take(text, "/") || !take_number(text, parsed.port)) return false;
  if (!take(text, "?key=") || !take_number(text, parsed.key, 16)) return false;
  if (is_udp && (!take(text, "&payload=") || !take_number(text, parsed.payload))) return false;
  if (!text.empty()) return false;
  name = parsed;
  return true;
}

// Applies SplitMix64's finalizer to both halves and discards half of the result: 32 bits of 96 do
// not determine the key.
std::uint64_t mark_of(std::uint64_t key, std::uint32_t generation, std::uint16_t channel) {
  std::uint64_t x = key ^ (std::uint64_t{generation} << 16 | channel) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
  return x >> 32 | 1;
}

}  // namespace score::pm::fi
