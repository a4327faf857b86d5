// What PM is compared with: the same exchange without PM, as bare as it can be written.
#pragma once

#include "bench/pm/harness.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace score::bench {

// The job that is measured.
constexpr std::uint64_t kBenchKey = 0x5ca1ab1e;
constexpr std::uint32_t kBenchGeneration = 7;
constexpr std::uint16_t kBenchPort = 4000;

struct Amount {
  std::size_t size = 8;   // bytes of a message
  unsigned count = 1000;  // round trips, or messages of a stream
};

// Each puts the seconds of `count` round trips (or the seconds and bytes of a stream) into Shared.

// Two flags in shared memory, one cache line each; larger sizes are copied beside the flag.
void flag_ping_pong(int side, Shared& shared, Amount amount);
// One process_vm_writev after another.
void cross_memory_stream(int side, Shared& shared, Amount amount);
// Mapped receive ring of AF_PACKET, one send a frame. What does not fit a frame goes in several,
// never more ahead of the receiver than half its ring.
void packet_ring_ping_pong(int side, Shared& shared, Amount amount, const std::string& peer_mac);
void packet_ring_stream(int side, Shared& shared, Amount amount, const std::string& peer_mac);
// A message that does not fit a frame goes in bursts with UDP_SEGMENT and UDP_GRO, never more ahead
// of the receiver than its socket holds: how far it is, it says through shared memory.
void udp_ping_pong(int side, Shared& shared, Amount amount, const std::string own,
                   const std::string peer);
// Bursts with UDP_SEGMENT and UDP_GRO; what arrives is counted, losses are not made good.
void udp_stream(int side, Shared& shared, Amount amount, const std::string own,
                const std::string peer);
void tcp_ping_pong(int side, Shared& shared, Amount amount, const std::string server);
void tcp_stream(int side, Shared& shared, Amount amount, const std::string server);

}  // namespace score::bench
