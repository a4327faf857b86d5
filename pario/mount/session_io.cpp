#include "pario/mount/session_io.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <sys/uio.h>
#include <unistd.h>

namespace score::pario {
namespace {

// From linux/fuse.h, whose copy in Debian 12 is older than the kernels that it runs on.
constexpr std::uint32_t kOpen = 14;
constexpr std::uint32_t kCreate = 35;
constexpr std::uint32_t kInit = 26;
constexpr std::uint32_t kTemporary = 51;
constexpr std::uint32_t kMoreFlags = 1U << 30;              // FUSE_INIT_EXT
constexpr std::uint32_t kSharedMappings = 1U << (36 - 32);  // FUSE_DIRECT_IO_ALLOW_MMAP
constexpr std::uint32_t kDirect = 1;                        // FOPEN_DIRECT_IO
constexpr std::uint32_t kParallelWrites = 1U << 6;          // FOPEN_PARALLEL_DIRECT_WRITES

struct InHeader {
  std::uint32_t length = 0;
  std::uint32_t opcode = 0;
  std::uint64_t unique = 0;
  std::array<std::uint32_t, 6> rest{};
};

struct InitRequest {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint32_t max_readahead = 0;
  std::uint32_t flags = 0;
  std::uint32_t flags2 = 0;
};

struct OutHeader {
  std::uint32_t length = 0;
  std::int32_t error = 0;
  std::uint64_t unique = 0;
};

struct InitReply {
  std::array<std::uint32_t, 3> first{};
  std::uint32_t flags = 0;
  std::array<std::uint32_t, 4> middle{};
  std::uint32_t flags2 = 0;
  std::array<std::uint32_t, 7> last{};
};

// This is the reply to OPEN, and the end of the reply to CREATE.
struct OpenReply {
  std::uint64_t handle = 0;
  std::uint32_t flags = 0;
  std::uint32_t backing = 0;
};

constexpr std::size_t kEntryBytes = 128;  // of the reply to CREATE, before that

static_assert(sizeof(InHeader) == 40 && sizeof(OutHeader) == 16 && sizeof(InitReply) == 64);

// This is the number of the INIT request whose reply is to be amended. One thread handles INIT,
// before there are others.
std::atomic<std::uint64_t> init_request = 0;
// This is the number of the OPEN or CREATE request that this thread handles; it also replies.
thread_local std::uint64_t open_request = 0;

ssize_t read_request(int fd, void* memory, std::size_t size, void*) {
  const ssize_t length = ::read(fd, memory, size);
  InHeader header;
  if (length < static_cast<ssize_t>(sizeof header)) return length;
  std::memcpy(&header, memory, sizeof header);
  if (header.opcode == kTemporary) {
    header.opcode = kCreate;
    std::memcpy(memory, &header, sizeof header);
  }
  open_request = header.opcode == kOpen || header.opcode == kCreate ? header.unique : 0;
  InitRequest init;
  if (header.opcode == kInit && length >= static_cast<ssize_t>(sizeof header + sizeof init)) {
    std::memcpy(&init, static_cast<const char*>(memory) + sizeof header, sizeof init);
    const bool is_offered = (init.flags & kMoreFlags) != 0 && (init.flags2 & kSharedMappings) != 0;
    if (is_offered) init_request = header.unique;
  }
  return length;
}

// Lets several threads write to a file at once (Linux 6.2; older kernels ignore it). libfuse 3.14
// has no field for this.
ssize_t write_open_reply(int fd, iovec* pieces) {
  std::array<char, kEntryBytes + sizeof(OpenReply)> bytes{};
  const std::size_t length = pieces[1].iov_len;
  std::memcpy(bytes.data(), pieces[1].iov_base, length);
  char* place = bytes.data() + length - sizeof(OpenReply);
  OpenReply reply;
  std::memcpy(&reply, place, sizeof reply);
  if ((reply.flags & kDirect) != 0) reply.flags |= kParallelWrites;
  std::memcpy(place, &reply, sizeof reply);
  std::array<iovec, 2> amended{pieces[0], {bytes.data(), length}};
  return ::writev(fd, amended.data(), static_cast<int>(amended.size()));
}

bool is_open_reply(const OutHeader& header, std::size_t length) {
  return header.unique == open_request && header.error == 0 &&
         (length == sizeof(OpenReply) || length == kEntryBytes + sizeof(OpenReply));
}

ssize_t write_reply(int fd, iovec* pieces, int count, void*) {
  OutHeader header;
  if (open_request != 0 && count == 2 && pieces[0].iov_len == sizeof header) {
    std::memcpy(&header, pieces[0].iov_base, sizeof header);
    if (is_open_reply(header, pieces[1].iov_len)) return write_open_reply(fd, pieces);
  }
  InitReply reply;
  if (init_request == 0 || count != 2 || pieces[0].iov_len != sizeof header ||
      pieces[1].iov_len != sizeof reply) {
    return ::writev(fd, pieces, count);
  }
  std::memcpy(&header, pieces[0].iov_base, sizeof header);
  if (header.unique != init_request) return ::writev(fd, pieces, count);
  init_request = 0;
  std::memcpy(&reply, pieces[1].iov_base, sizeof reply);
  reply.flags |= kMoreFlags;
  reply.flags2 |= kSharedMappings;
  std::array<iovec, 2> amended{pieces[0], {&reply, sizeof reply}};
  return ::writev(fd, amended.data(), static_cast<int>(amended.size()));
}

}  // namespace

int amend_messages(fuse_session* session) {
  fuse_custom_io io{};
  io.read = read_request;
  io.writev = write_reply;
  return fuse_session_custom_io(session, &io, fuse_session_fd(session));
}

}  // namespace score::pario
