#include "scored/node/channel/channel_sockets.hpp"

#include "base/errc.hpp"
#include "base/os/log.hpp"

#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

namespace score::node {

namespace {

Result<sockaddr_in> own_address(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return fail(errno_code(errno), "cannot get the address of a socket");
  }
  return address;
}

std::array<char, 6> bytes_of(const sockaddr_in& address) {
  std::array<char, 6> bytes{};
  std::memcpy(bytes.data(), &address.sin_addr, 4);
  std::memcpy(bytes.data() + 4, &address.sin_port, 2);
  return bytes;
}

int option_of(int fd, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

Result<UniqueFd> udp_socket() {
  UniqueFd made(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) return fail(errno_code(errno), "cannot make a UDP socket");
  return made;
}

}  // namespace

Result<std::shared_ptr<ChannelSocket>> ChannelSockets::open(const Place& place, in_addr local) {
  std::erase_if(sockets_, [](const auto& entry) { return entry.second.expired(); });
  if (auto known = sockets_[place].lock()) return known;
  auto fd = udp_socket();
  if (!fd) return fd.error();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr = local;
  if (bind(fd->get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail(errno_code(errno), "cannot bind a UDP socket");
  }
  auto bound = own_address(fd->get());
  if (!bound) return bound.error();
  auto made = std::make_shared<ChannelSocket>(ChannelSocket{std::move(*fd), bytes_of(*bound)});
  sockets_[place] = made;
  return made;
}

Result<std::shared_ptr<ChannelSocket>> ChannelSockets::adopt(const Place& place, UniqueFd fd) {
  const bool is_udp = option_of(fd.get(), SO_DOMAIN) == AF_INET &&
                      option_of(fd.get(), SO_TYPE) == SOCK_DGRAM &&
                      option_of(fd.get(), SO_PROTOCOL) == IPPROTO_UDP;
  if (!is_udp) return fail(Errc::Malformed, "a channel's socket is not a UDP socket");
  auto bound = own_address(fd.get());
  if (!bound) return bound.error();
  const auto address = bytes_of(*bound);
  if (auto known = sockets_[place].lock(); known && known->address == address) return known;
  auto made = std::make_shared<ChannelSocket>(ChannelSocket{std::move(fd), address, 0, true});
  pass_only(*made, place.channel, {});
  if (sockets_[place].expired()) sockets_[place] = made;
  return made;
}

// The socket's users also hold it and may change the filter, since it is their own socket.
void pass_only(const ChannelSocket& socket, std::uint16_t channel,
               std::span<const pm::FrameOwner> owners) {
  const int error = socket.is_adopted || owners.size() > pm::kMostFrameOwners
                        ? pm::detach_filter(socket.fd.get())
                        : pm::attach_filter(socket.fd.get(), {pm::kUdpHeader, channel, owners});
  if (error != 0) log_warning("Cannot set the filter of a channel's socket", kv("errno", -error));
}

Result<UniqueFd> keep_tcp_port(in_addr local) {
  UniqueFd made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr = local;
  const int on = 1;
  if (!made || setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail(errno_code(errno), "cannot reserve a TCP port");
  }
  return made;
}

Result<in_addr> address_of_host(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "9", &hints, &found) != 0) {
    return fail(Errc::NotFound, "cannot find an IPv4 address of {}", host);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  return reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr;
}

namespace {

// PM can use only IPv4. For a host that is reached over IPv6, this returns the IPv4 address of the
// interface that leads there.
Result<in_addr> address_beside_ipv6(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET6;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "9", &hints, &found) != 0) {
    return fail(Errc::NotFound, "cannot find an address of {}", host);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  const UniqueFd probe(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 own{};
  socklen_t size = sizeof own;
  if (!probe || connect(probe.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    return fail(errno_code(errno), "cannot find a route to {}", host);
  }
  if (IN6_IS_ADDR_LOOPBACK(&own.sin6_addr)) return in_addr{htonl(INADDR_LOOPBACK)};
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return fail(errno_code(errno), "cannot list interfaces");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> interfaces(all, &freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET6) continue;
    const auto* address = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
    if (IN6_ARE_ADDR_EQUAL(&address->sin6_addr, &own.sin6_addr)) {
      return address_of_interface(one->ifa_name);
    }
  }
  return fail(Errc::NotFound, "no interface leads to {}", host);
}

}  // namespace

Result<in_addr> address_towards(const std::string& host) {
  const auto to = address_of_host(host);
  if (!to) return address_beside_ipv6(host);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  address.sin_addr = *to;
  auto probe = udp_socket();
  if (!probe) return probe.error();
  // No packet is sent: the kernel only chooses the route.
  if (connect(probe->get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail(errno_code(errno), "cannot find a route to {}", host);
  }
  auto own = own_address(probe->get());
  if (!own) return own.error();
  return own->sin_addr;
}

Result<in_addr> address_of_interface(const std::string& interface) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return fail(errno_code(errno), "cannot list interfaces");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if (interface == one->ifa_name) {
      return reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
    }
  }
  return fail(Errc::NotFound, "cannot find an IPv4 address of interface {}", interface);
}

}  // namespace score::node
