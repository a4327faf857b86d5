// The two PM contexts of a connection: rank 0 is the server, rank 1 the client. Addresses,
// descriptors and the key are exchanged over the authenticated TCP connection.
#pragma once

#include "pario/core/message.hpp"
#include "pmlib/devices/udp_device.hpp"
#include "pmlib/endpoint/endpoint.hpp"

#include <memory>

namespace score::pario {

inline constexpr std::uint32_t kServerRank = 0;
inline constexpr std::uint32_t kClientRank = 1;

using EndpointPtr = std::unique_ptr<pm::Endpoint>;

// Functions return 0 or an errno value.

// Server: makes both contexts in memory. They can be opened while `endpoint` exists.
int make_near(std::uint64_t key, EndpointPtr& endpoint, ChannelOffer& offer);
// Client of the same node and user: opens what the server has made. ESRCH: it is not there, or is
// something else, so the server is on another node after all.
int open_near(const ChannelOffer& offer, EndpointPtr& endpoint);

// A socket for a context. `own`: the host's address, port 0 for any.
struct UdpSocket {
  std::unique_ptr<pm::UdpDevice> device;
  AddressBytes address{};
};

// What both contexts have to agree about.
struct UdpPair {
  std::uint64_t key = 0;
  std::uint32_t payload = 0;  // of a frame, at most; see is_payload()
};

bool is_payload(std::uint32_t payload);
// What fits a packet between the ends of this TCP connection.
std::uint32_t payload_of_path(int fd);

int open_udp_socket(const AddressBytes& own, std::uint32_t payload, UdpSocket& socket);
// Makes the context of `rank`, whose peer is at `peer`.
int make_udp(UdpSocket socket, const UdpPair& pair, std::uint32_t rank, const AddressBytes& peer,
             EndpointPtr& endpoint);

// The host's address of this end of a TCP connection, port 0. EAFNOSUPPORT: it is not IPv4.
int own_host(int fd, AddressBytes& address);
// True if both ends of the connection have the same address.
bool is_same_host(int fd);

}  // namespace score::pario
