// Creates the two PM contexts of a connection: rank 0 is the server, rank 1 the client. Addresses,
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

// The server calls this. It creates both contexts in memory. They can be opened as long as
// `endpoint` exists.
int make_near(std::uint64_t key, EndpointPtr& endpoint, ChannelOffer& offer);
// A client of the same node and user calls this. It opens the contexts that the server has created.
// Returns ESRCH if they do not exist or are something else, which means that the server is on a
// different node.
int open_near(const ChannelOffer& offer, EndpointPtr& endpoint);

// Holds the socket of a context. `own`: the host's address, with port 0 for any port.
struct UdpSocket {
  std::unique_ptr<pm::UdpDevice> device;
  AddressBytes address{};
};

// Both contexts must agree about these values.
struct UdpPair {
  std::uint64_t key = 0;
  std::uint32_t payload = 0;  // of a frame, upper limit; see is_payload()
};

bool is_payload(std::uint32_t payload);
// Returns the payload that fits into a packet between the ends of this TCP connection.
std::uint32_t payload_of_path(int fd);

int open_udp_socket(const AddressBytes& own, std::uint32_t payload, UdpSocket& socket);
// Creates the context of `rank`, whose peer is at `peer`.
int make_udp(UdpSocket socket, const UdpPair& pair, std::uint32_t rank, const AddressBytes& peer,
             EndpointPtr& endpoint);

// Returns the host's address of this end of a TCP connection, with port 0. EAFNOSUPPORT: the
// address is not IPv4.
int own_host(int fd, AddressBytes& address);
// Returns true if both ends of the connection have the same address.
bool is_same_host(int fd);

}  // namespace score::pario
