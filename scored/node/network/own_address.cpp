#include "scored/node/network/own_address.hpp"

#include "scored/node/channel/channel_sockets.hpp"

#include <arpa/inet.h>
#include <array>

namespace score::node {

std::string control_interface(const NetworkConfig& network) {
  for (const NetworkLink& link : network.links) {
    if (link.device == NetworkDevice::Udp) return link.interface;
  }
  return {};
}

Result<std::string> own_address(const NetworkConfig& network, const std::string& head_host) {
  const std::string interface = control_interface(network);
  const auto address =
      interface.empty() ? address_towards(head_host) : address_of_interface(interface);
  if (!address) return address.error();
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &*address, text.data(), text.size());
  return std::string(text.data());
}

}  // namespace score::node
