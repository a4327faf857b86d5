// A JobNetwork describes the network of one job: its ranks, their hosts and addresses. It is read
// from an address file (tests, debugging, jobs without scored) or filled in by scored; contexts are
// made from it.
//
// In an address file, `#` starts a comment:
//
//   key 0123456789abcdef       # 64-bit key of the job, hexadecimal; required
//   generation 1               # incarnation of the job
//   channel 0
//   device udp                 # udp, ethernet, ofi or none (shared memory only)
//   interface eth0             # ethernet
//   provider tcp               # ofi: tcp, shm, verbs, "udp;ofi_rxd" ...
//   link ethernet eth1         # a further link to the same ranks: udp, ethernet and interface, or
//                              # ofi and provider; each rank line then has one more address
//   weights 1 4                # shares of the frames for the device and each link
//   payload 1424               # largest payload of a frame in bytes
//   peer_timeout 10            # seconds of silence after which a peer on another node is dead
//   auth tag                   # frames carry a keyed tag instead of the key and a checksum
//   shmem /run/user/1000/job7  # ranks of one host find each other's contexts at PATH.RANK
//   rank 0 node0 10.0.0.1:4000 # rank, host, address: a.b.c.d:port, MAC, or libfabric's; "-" = none
//   rank 1 node0 10.0.0.1:4001
#pragma once

#include "pmlib/core/segment.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace score::pm {

struct RankPlace {
  std::string host;
  std::string address;
  std::vector<std::string> link_addresses{};  // of further links, in their order
};

// This is the value of an address file without the setting. It is at most kMaxPeerTimeout.
constexpr std::uint16_t kDefaultPeerTimeout = 10;
constexpr std::uint16_t kMaxPeerTimeout = 240;

struct JobNetwork {
  std::uint64_t key = 0;
  std::uint32_t generation = 1;
  std::uint16_t channel = 0;
  FrameAuth auth = FrameAuth::Key;
  // After this many seconds without an answer a peer on a different node counts as dead. A rank
  // answers only while it is in PM, so one that computes for longer counts as dead. With 0 silence
  // is ignored, because scored watches the ranks.
  std::uint16_t peer_timeout_s = 0;
  DeviceConfig device{};
  std::vector<LinkConfig> links{};  // in addition to the device, at most kMaxLinks - 1
  LinkWeights weights{};            // of the device and the links
  std::uint32_t payload_bytes = 1424;
  std::string shmem;  // empty: none by path; contexts made together share memory in any case
  std::vector<RankPlace> ranks;
};

// Parses an address file. If `text` is not a valid one, returns false with the fault and its line
// in `error`.
bool parse_network(std::string_view text, JobNetwork& network, std::string& error);

// Returns the sizes for a context of this job.
Geometry geometry_for(const JobNetwork& network);

// Makes the context of `rank` with routes and addresses filled in: a memfd if `path` is empty, else
// a file of that name. If `with_shmem` is true, ranks of the same host are reached by shared
// memory.
std::unique_ptr<MappedSegment> create_context(const JobNetwork& network, std::uint32_t rank,
                                              bool with_shmem, const std::string& path, int& error);

}  // namespace score::pm
