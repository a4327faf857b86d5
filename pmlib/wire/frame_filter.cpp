#include "pmlib/wire/frame_filter.hpp"

#include "pmlib/wire/frame.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstddef>
#include <linux/filter.h>
#include <sys/socket.h>
#include <vector>

namespace score::pm {

namespace {

using FilterProgram = std::vector<sock_filter>;

constexpr sock_filter kPass = BPF_STMT(BPF_RET | BPF_K, 0xffffffff);
constexpr sock_filter kDrop = BPF_STMT(BPF_RET | BPF_K, 0);

// Loads `bytes` (BPF_B, BPF_H or BPF_W) at `at`. A load beyond the end drops the packet.
sock_filter load(std::size_t bytes, std::size_t at) {
  return BPF_STMT(static_cast<std::uint16_t>(BPF_LD | BPF_ABS | bytes),
                  static_cast<std::uint32_t>(at));
}

// Skips `statements` unless the loaded word is `value`.
sock_filter unless(std::uint32_t value, std::size_t statements) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, static_cast<std::uint8_t>(statements));
}

// Continues if the loaded word is `value`, else drops.
void require(FilterProgram& program, std::uint32_t value) {
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0));
  program.push_back(kDrop);
}

// Drops a packet that is shorter than its length field claims. The length is assembled from its
// bytes.
void require_length(FilterProgram& program, std::size_t frame) {
  constexpr std::size_t kAt = offsetof(FrameHeader, length);
  const auto least = static_cast<std::uint32_t>(frame + sizeof(FrameHeader));
  program.insert(
      program.end(),
      {load(BPF_B, frame + kAt + 1), BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 8),
       BPF_STMT(BPF_MISC | BPF_TAX, 0), load(BPF_B, frame + kAt),
       BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0), BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, least),
       BPF_STMT(BPF_MISC | BPF_TAX, 0), BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
       BPF_JUMP(BPF_JMP | BPF_JGE | BPF_X, 0, 1, 0), kDrop});
}

// Passes frames for `owner` and continues with all others.
void pass_owner(FilterProgram& program, std::size_t frame, const FrameOwner& owner) {
  const auto low = static_cast<std::uint32_t>(owner.key);
  const auto high = static_cast<std::uint32_t>(owner.key >> 32);
  const std::size_t key = frame + offsetof(FrameHeader, key);
  const bool has_key = owner.key != 0;
  const bool has_generation = owner.generation != 0;
  const std::size_t key_checks = has_key ? 4 : 0;
  program.push_back(load(BPF_W, frame + offsetof(FrameHeader, destination)));
  program.push_back(unless(htonl(owner.rank), 1 + key_checks + (has_generation ? 2 : 0)));
  if (has_generation) {
    program.push_back(load(BPF_W, frame + offsetof(FrameHeader, generation)));
    program.push_back(unless(htonl(owner.generation), 1 + key_checks));
  }
  if (has_key) {
    program.insert(program.end(), {load(BPF_W, key), unless(htonl(low), 3), load(BPF_W, key + 4),
                                   unless(htonl(high), 1)});
  }
  program.push_back(kPass);
}

}  // namespace

// BPF loads are in network order and the frame is little-endian, so the constants are swapped. If
// the kernel has joined frames, only the first is checked: they are all of one sender.
int attach_filter(int fd, const FrameFilter& filter) {
  if (filter.owners.size() > kMostFrameOwners) return -EINVAL;
  FilterProgram program;
  if (filter.ether_type != 0) {
    program.push_back(load(BPF_H, filter.offset - sizeof filter.ether_type));
    require(program, filter.ether_type);
  }
  if (!filter.is_brief) {
    program.push_back(load(BPF_H, filter.offset + offsetof(FrameHeader, magic)));
    require(program, kFrameMagic << 8 | kFrameVersion);
    require_length(program, filter.offset);
  }
  program.push_back(load(BPF_H, filter.offset + offsetof(FrameHeader, channel)));
  require(program, htons(filter.channel));
  for (const FrameOwner& owner : filter.owners) pass_owner(program, filter.offset, owner);
  program.push_back(kDrop);
  const sock_fprog whole{static_cast<unsigned short>(program.size()), program.data()};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &whole, sizeof whole) == 0 ? 0 : -errno;
}

int detach_filter(int fd) {
  const int unused = 0;
  const bool is_off =
      setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused) == 0 || errno == ENOENT;
  return is_off ? 0 : -errno;
}

}  // namespace score::pm
