// Defines the protocol of scored-checkpoint and the shepherd: a stream socket as descriptor 4, and
// messages of fixed length, each with at most one descriptor. Every order is answered.
#pragma once

#include <cstddef>
#include <cstdint>

namespace score::checkpoint {

inline constexpr std::uint32_t kMagic = 0x50434353;  // "SCCP"
inline constexpr std::size_t kStreamsPerOrder = 4'096;

// criu adds these to the pids that a restored job must find free, so a fresh job has none of them.
inline constexpr int kFirstPid = 4'000;

struct CriuRequest {
  enum class Kind : std::uint32_t {
    // Names a pipe or socket of the tasks for the next order: the shepherd has its other end, or
    // it is a socket of PM. To restore, its descriptor comes with it.
    Stream = 1,
    Save = 2,     // the tree of `process`, into the directory that comes with it
    Restore = 3,  // from the directory that comes with it
  };

  // PmSocket: to restore only; `inode` is its number, see socket_images.hpp.
  enum class What : std::uint32_t { Pipe, Socket, PmSocket };

  std::uint32_t magic = kMagic;
  Kind kind = Kind::Stream;
  std::int32_t process = 0;  // Save: its root; Restore: the last process id that the job had given
  What what = What::Pipe;
  std::uint64_t inode = 0;
};

static_assert(sizeof(CriuRequest) == 24);

struct CriuReply {
  std::uint32_t magic = kMagic;
  std::int32_t error = 0;   // errno, if criu could not be run
  std::int32_t status = 0;  // exit status of criu
};

static_assert(sizeof(CriuReply) == 12);

}  // namespace score::checkpoint
