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
constexpr std::uint32_t kCreate = 35;
constexpr std::uint32_t kInit = 26;
constexpr std::uint32_t kTemporary = 51;
constexpr std::uint32_t kMoreFlags = 1U << 30;              // FUSE_INIT_EXT
constexpr std::uint32_t kSharedMappings = 1U << (36 - 32);  // FUSE_DIRECT_IO_ALLOW_MMAP

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

static_assert(sizeof(InHeader) == 40 && sizeof(OutHeader) == 16 && sizeof(InitReply) == 64);

// This is the number of the INIT request whose reply is to be amended. One thread handles INIT,
// before there are others.
std::atomic<std::uint64_t> init_request = 0;

ssize_t read_request(int fd, void* memory, std::size_t size, void*) {
  const ssize_t length = ::read(fd, memory, size);
  InHeader header;
  if (length < static_cast<ssize_t>(sizeof header)) return length;
  std::memcpy(&header, memory, sizeof header);
  if (header.opcode == kTemporary) {
    header.opcode = kCreate;
    std::memcpy(memory, &header, sizeof header);
  }
  InitRequest init;
  if (header.opcode == kInit && length >= static_cast<ssize_t>(sizeof header + sizeof init)) {
    std::memcpy(&init, static_cast<const char*>(memory) + sizeof header, sizeof init);
    const bool is_offered = (init.flags & kMoreFlags) != 0 && (init.flags2 & kSharedMappings) != 0;
    if (is_offered) init_request = header.unique;
  }
  return length;
}

ssize_t write_reply(int fd, iovec* pieces, int count, void*) {
  OutHeader header;
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
