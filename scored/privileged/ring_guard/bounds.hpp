// Describes the objects that scored-ring-guard leaves in the kernel for the launcher: a table with
// the bounds of each ring, by socket, and programs that enforce them for marked packet sockets. See
// README.md.
#pragma once

#include <cstdint>

namespace score::ring_guard {

// This is the SO_MARK of a bounded ring; its holder needs CAP_NET_ADMIN or CAP_NET_RAW to change
// it. The programs check only packet sockets with this mark.
inline constexpr std::uint32_t kMark = 0x5c0e0001;

// The paths below are pinned in a BPF file system. The number changes with Bounds and with the
// programs.
inline constexpr const char* kFileSystem = "/sys/fs/bpf";
inline constexpr const char* kDirectory = "/sys/fs/bpf/scored_rings_1";
inline constexpr const char* kTable = "/sys/fs/bpf/scored_rings_1/bounds";

// This is the only interface in the namespace in which rings are opened.
inline constexpr const char* kRingInterface = "ring0";

// Limits what a ring may send. The fields have the byte order of the frame: those of Ethernet in
// network order, those of PM in little-endian order.
struct Bounds {
  std::uint8_t source[6] = {};      // address of the interface
  std::uint16_t ether_type = 0;     // network order
  std::uint16_t magic_version = 0;  // the first two bytes of PM's header
  std::uint16_t channel = 0;
  std::uint32_t generation = 0;
  std::uint64_t key = 0;   // 0: not checked, because frames carry tags
  std::uint32_t rank = 0;  // of the sender
  std::uint32_t reserved = 0;
};

static_assert(sizeof(Bounds) == 32);

}  // namespace score::ring_guard
