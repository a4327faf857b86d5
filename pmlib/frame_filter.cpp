#include "pmlib/frame_filter.hpp"

#include "pmlib/frame.hpp"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstddef>
#include <linux/filter.h>
#include <sys/socket.h>

namespace score::pm {

namespace {

constexpr std::size_t kProgram = 21;  // statements

// How many statements lie between the test at `at` and the last one, which drops.
constexpr std::uint8_t to_end(std::size_t at) {
  return static_cast<std::uint8_t>(kProgram - 1 - (at + 1));
}

}  // namespace

// BPF loads are in network order, the frame is little-endian: the constants are swapped, and the
// length is put together from its bytes. A load beyond the end drops the packet. Of frames that the
// kernel has joined the first is looked at: they are all of one sender.
int attach_filter(int fd, const FrameFilter& filter) {
  const auto field = [&](std::size_t at) { return static_cast<std::uint32_t>(filter.offset + at); };
  const auto key_low = static_cast<std::uint32_t>(filter.key);
  const auto key_high = static_cast<std::uint32_t>(filter.key >> 32);
  constexpr std::uint32_t kStart = kFrameMagic << 8 | kFrameVersion;
  std::array<sock_filter, kProgram> code{{
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, field(offsetof(FrameHeader, magic))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kStart, 0, to_end(1)),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, field(offsetof(FrameHeader, destination))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(filter.rank), 0, to_end(3)),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, field(offsetof(FrameHeader, key))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(key_low), 0, to_end(5)),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, field(offsetof(FrameHeader, key) + 4)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(key_high), 0, to_end(7)),
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, field(offsetof(FrameHeader, channel))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(filter.channel), 0, to_end(9)),
      // Not shorter than it says.
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, field(offsetof(FrameHeader, length) + 1)),
      BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 8),
      BPF_STMT(BPF_MISC | BPF_TAX, 0),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, field(offsetof(FrameHeader, length))),
      BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
      BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, field(sizeof(FrameHeader))),
      BPF_STMT(BPF_MISC | BPF_TAX, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_X, 0, 0, to_end(18)),
      BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
      BPF_STMT(BPF_RET | BPF_K, 0),
  }};
  // Without a key in the frames the two tests of it compare nothing with nothing.
  if (filter.key == 0) code[4] = code[6] = BPF_STMT(BPF_LD | BPF_IMM, 0);
  sock_fprog program{code.size(), code.data()};
  if (filter.is_brief) {
    program = {code.size() - 2, &code[2]};
    code[10] = BPF_STMT(BPF_RET | BPF_K, 0xffffffff);
  }
  if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0) return -errno;
  return 0;
}

}  // namespace score::pm
