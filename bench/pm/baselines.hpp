// Declares the baselines for PM: the same exchanges without PM, with as little overhead as
// possible.
#pragma once

#include "bench/pm/harness.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace score::bench {

// These identify the job that is measured.
constexpr std::uint64_t kBenchKey = 0x5ca1ab1e;
constexpr std::uint32_t kBenchGeneration = 7;
constexpr std::uint16_t kBenchPort = 4000;

struct Amount {
  std::size_t size = 8;   // bytes of a message
  unsigned count = 1000;  // round trips, or messages of a stream
};

// Each function puts the seconds of `count` round trips (or the seconds and bytes of a stream) into
// Shared.

// Uses two flags in shared memory, one cache line each; larger messages are copied next to the
// flag.
void flag_ping_pong(int side, Shared& shared, Amount amount);
// Calls process_vm_writev repeatedly.
void cross_memory_stream(int side, Shared& shared, Amount amount);
// Uses the mapped receive ring of AF_PACKET, and one send per frame. A message that does not fit a
// frame goes in several, never further ahead of the receiver than half its ring.
void packet_ring_ping_pong(int side, Shared& shared, Amount amount, const std::string& peer_mac);
void packet_ring_stream(int side, Shared& shared, Amount amount, const std::string& peer_mac);
// A message that does not fit a frame goes in bursts with UDP_SEGMENT and UDP_GRO, never further
// ahead of the receiver than its socket holds. The receiver publishes its progress in shared
// memory.
void udp_ping_pong(int side, Shared& shared, Amount amount, const std::string own,
                   const std::string peer);
// Sends bursts with UDP_SEGMENT and UDP_GRO. Counts the bytes that arrive; losses are not repaired.
void udp_stream(int side, Shared& shared, Amount amount, const std::string own,
                const std::string peer);
void tcp_ping_pong(int side, Shared& shared, Amount amount, const std::string server);
void tcp_stream(int side, Shared& shared, Amount amount, const std::string server);

}  // namespace score::bench
