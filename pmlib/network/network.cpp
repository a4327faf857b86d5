#include "pmlib/network/network.hpp"

#include "pmlib/devices/ethernet_device.hpp"
#include "pmlib/devices/udp_device.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace score::pm {

namespace {

// Returns the words of a line up to a comment.
std::vector<std::string_view> words_of(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t start = line.find_first_not_of(" \t\r");
    if (start == std::string_view::npos) return words;
    line.remove_prefix(start);
    const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

template <class T>
bool read_number(std::string_view word, T& value, int base = 10) {
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  return failed == std::errc() && end == word.data() + word.size();
}

template <std::size_t N>
bool read_name(std::string_view word, std::array<char, N>& name) {
  if (word.size() >= N) return false;
  name = {};
  std::copy(word.begin(), word.end(), name.begin());
  return true;
}

bool read_device(std::string_view word, DeviceKind& kind) {
  if (word == "none") {
    kind = DeviceKind::None;
  } else if (word == "udp") {
    kind = DeviceKind::Udp;
  } else if (word == "ethernet") {
    kind = DeviceKind::Ethernet;
  } else if (word == "ofi") {
    kind = DeviceKind::Ofi;
  } else {
    return false;
  }
  return true;
}

bool read_auth(std::string_view word, FrameAuth& auth) {
  auth = word == "tag" ? FrameAuth::Tag : FrameAuth::Key;
  return word == "tag" || word == "key";
}

bool read_rank(const std::vector<std::string_view>& words, JobNetwork& network) {
  std::uint32_t rank = 0;
  if (words.size() < 4 || words.size() > 3 + kMaxLinks || !read_number(words[1], rank) ||
      rank >= kMaxRanks) {
    return false;
  }
  if (rank >= network.ranks.size()) network.ranks.resize(rank + 1);
  if (!network.ranks[rank].host.empty()) return false;
  network.ranks[rank] = {std::string(words[2]), std::string(words[3])};
  network.ranks[rank].link_addresses.assign(words.begin() + 4, words.end());
  return true;
}

bool read_link(const std::vector<std::string_view>& words, JobNetwork& network) {
  LinkConfig link;
  if (words.size() < 2 || !read_device(words[1], link.kind)) return false;
  const bool has_name = link.kind == DeviceKind::Ethernet || link.kind == DeviceKind::Ofi;
  if (!has_name && link.kind != DeviceKind::Udp) return false;
  if (words.size() != (has_name ? 3 : 2) || network.links.size() + 1 >= kMaxLinks) return false;
  if (has_name && !read_name(words[2], link.name)) return false;
  network.links.push_back(link);
  return true;
}

bool read_weights(const std::vector<std::string_view>& words, LinkWeights& weights) {
  weights = {};
  if (words.size() < 2 || words.size() > 1 + weights.size()) return false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!read_number(words[i], weights[i - 1]) || weights[i - 1] == 0) return false;
  }
  return true;
}

bool read_line(const std::vector<std::string_view>& words, JobNetwork& network) {
  if (words[0] == "rank") return read_rank(words, network);
  if (words[0] == "link") return read_link(words, network);
  if (words[0] == "weights") return read_weights(words, network.weights);
  if (words.size() != 2) return false;
  const std::string_view value = words[1];
  if (words[0] == "key") return read_number(value, network.key, 16);
  if (words[0] == "generation") return read_number(value, network.generation);
  if (words[0] == "channel") return read_number(value, network.channel);
  if (words[0] == "device") return read_device(value, network.device.kind);
  if (words[0] == "interface") return read_name(value, network.device.interface);
  if (words[0] == "mode") return value == "ring";
  if (words[0] == "provider") return read_name(value, network.device.provider);
  if (words[0] == "peer_timeout") return read_number(value, network.peer_timeout_s);
  if (words[0] == "auth") return read_auth(value, network.auth);
  if (words[0] == "payload") return read_number(value, network.payload_bytes);
  if (words[0] == "shmem") return !(network.shmem = value).empty();
  return false;
}

// Reads an address. For libfabric and UDP it is IPv4 and port, for Ethernet a MAC address.
bool read_address(DeviceKind kind, const std::string& text, PeerAddress& address) {
  switch (kind) {
    case DeviceKind::None:
      return true;
    case DeviceKind::Udp:
    case DeviceKind::Ofi:
      return UdpDevice::parse(text.c_str(), address);
    case DeviceKind::Ethernet:
      return EthernetDevice::parse(text.c_str(), address);
  }
  return false;
}

// Reads the address of `rank` on each link.
bool read_addresses(const JobNetwork& network, std::uint32_t rank,
                    std::array<PeerAddress, kMaxLinks>& addresses) {
  const RankPlace& place = network.ranks[rank];
  if (place.link_addresses.size() != network.links.size() ||
      !read_address(network.device.kind, place.address, addresses[0])) {
    return false;
  }
  for (std::size_t i = 0; i < network.links.size(); ++i) {
    if (!read_address(network.links[i].kind, place.link_addresses[i], addresses[i + 1])) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool parse_network(std::string_view text, JobNetwork& network, std::string& error) {
  network = JobNetwork();
  network.peer_timeout_s = kDefaultPeerTimeout;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (words.empty() || read_line(words, network)) continue;
    error =
        "line " + std::to_string(number) + ": " +
        (words[0] == "mode" ? "mode: use ring, the packet ring, or leave it out; AF_XDP was removed"
                            : "unknown setting or invalid value: " + std::string(words[0]));
    return false;
  }
  for (std::uint32_t rank = 0; rank < network.ranks.size(); ++rank) {
    std::array<PeerAddress, kMaxLinks> addresses;
    if (!network.ranks[rank].host.empty() && read_addresses(network, rank, addresses)) continue;
    error = "rank " + std::to_string(rank) +
            ": missing line, or an address that does not fit the device";
    return false;
  }
  if (network.key == 0 || network.ranks.empty() || network.peer_timeout_s > kMaxPeerTimeout ||
      !SegmentLayout::of(geometry_for(network))) {
    error = "the file has no key or no ranks, or a number is out of range";
    return false;
  }
  return true;
}

Geometry geometry_for(const JobNetwork& network) {
  Geometry g;
  g.size = static_cast<std::uint32_t>(network.ranks.size());
  g.payload_bytes = network.payload_bytes;
  g.links = static_cast<std::uint32_t>(network.links.size()) + 1;
  return g;
}

std::unique_ptr<MappedSegment> create_context(const JobNetwork& network, std::uint32_t rank,
                                              bool with_shmem, const std::string& path,
                                              int& error) {
  error = EINVAL;
  if (rank >= network.ranks.size()) return nullptr;
  SegmentIdentity identity{.key = network.key,
                           .generation = network.generation,
                           .rank = rank,
                           .channel = network.channel};
  identity.auth = network.auth;
  identity.peer_timeout_s = network.peer_timeout_s;
  identity.device = network.device;
  if (network.links.size() >= kMaxLinks) return nullptr;
  std::copy(network.links.begin(), network.links.end(), identity.more_links.begin());
  identity.link_weights = network.weights;
  bool is_ethernet = network.device.kind == DeviceKind::Ethernet;
  for (const LinkConfig& link : network.links) is_ethernet |= link.kind == DeviceKind::Ethernet;
  // The window must fit the receive ring of an Ethernet device, which holds 128 frames.
  if (is_ethernet) identity.window = 96;
  const Geometry geometry = geometry_for(network);
  auto context = path.empty() ? MappedSegment::create(geometry, identity, error)
                              : MappedSegment::create_at(path, geometry, identity, error);
  if (!context) return nullptr;
  for (std::uint32_t i = 0; i < geometry.size; ++i) {
    PeerState& peer = context->segment().peer(i);
    std::array<PeerAddress, kMaxLinks> addresses{};
    read_addresses(network, i, addresses);
    for (std::uint32_t k = 0; k < geometry.links; ++k) {
      context->segment().link_address(k, i) = addresses[k];
    }
    const bool is_near = with_shmem && network.ranks[i].host == network.ranks[rank].host;
    peer.route = i == rank ? Route::Self : is_near ? Route::Shmem : Route::Packet;
  }
  return context;
}

}  // namespace score::pm
