// Remote memory over a channel: writes, reads and announcements of large messages.
//
// A region is named by index and nonce. Every frame that names one is checked against the table
// when it arrives: a frame for memory that is not registered any more is denied, never stored. An
// operation is named by index and tag, so that a late answer cannot end a newer operation.
#include "pmlib/channel/channel.hpp"
#include "pmlib/core/regions.hpp"

#include <cerrno>
#include <cstring>

namespace score::pm {

bool Channel::covers(std::uint32_t region, std::uint32_t nonce, std::uint64_t offset,
                     std::uint64_t length) const {
  return region_covers(segment_, region, nonce, offset, length);
}

bool Channel::covers_own(std::uint32_t region, std::uint64_t offset, std::uint64_t length) const {
  return region < segment_.geometry().regions &&
         covers(region, segment_.region(region).nonce, offset, length);
}

std::byte* Channel::memory_of(std::uint32_t region, std::uint64_t offset) const {
  return reinterpret_cast<std::byte*>(segment_.region(region).address + offset);
}

bool Channel::is_region_in_use(std::uint32_t region) const {
  for (std::uint32_t rank = 0; rank < identity_.size; ++rank) {
    for (std::uint16_t i = segment_.peer(rank).head; i != kNoIndex;
         i = segment_.descriptor(i).next) {
      const SendDescriptor& d = segment_.descriptor(i);
      if (d.kind == FrameKind::Write && d.local_region == region) return true;
    }
  }
  return false;
}

// --- starting them -----------------------------------------------------------------------------

int Channel::write(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
                   std::uint32_t length, OperationId& op) {
  if (const int error = check_peer(peer); error != 0) return error;
  if (!covers_own(local, offset, length)) return EINVAL;
  const std::uint16_t index = take_descriptor(reserved_);
  if (index == kNoIndex) return ENOBUFS;
  op = operations_.start(peer);
  if (op == 0) {
    free_descriptor(index);
    return ENOBUFS;
  }
  SendDescriptor& d = segment_.descriptor(index);
  d.kind = FrameKind::Write;
  d.op = static_cast<std::uint16_t>(op & 0xffff);
  d.length = length;
  d.local_region = local;
  d.local_offset = offset;
  d.remote_region = remote.region;
  d.remote_nonce = remote.nonce;
  d.remote_offset = remote.offset;
  enqueue(peer, index);
  return 0;
}

// Queues a small frame of the library's own: `bytes` as the payload of `kind`.
int Channel::enqueue_note(std::uint32_t peer, FrameKind kind, std::span<const std::byte> bytes,
                          std::uint16_t op) {
  const std::uint16_t index = take_descriptor(reserved_);
  if (index == kNoIndex) return ENOBUFS;
  const std::uint16_t buffer = take_send_buffer();
  if (buffer == kNoIndex) {
    free_descriptor(index);
    return ENOBUFS;
  }
  SendDescriptor& d = segment_.descriptor(index);
  d.kind = kind;
  d.buffer = buffer;
  d.op = op;
  d.length = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(segment_.send_buffer(buffer) + sizeof(FrameHeader), bytes.data(), bytes.size());
  d.payload_crc = crc32c(0, bytes.data(), bytes.size());
  enqueue(peer, index);
  return 0;
}

int Channel::read(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
                  std::uint32_t length, OperationId& op) {
  if (const int error = check_peer(peer); error != 0) return error;
  if (!covers_own(local, offset, length)) return EINVAL;
  op = operations_.start(peer);
  if (op == 0) return ENOBUFS;

  struct {
    RmaHeader from;
    ReadTarget to;
  } const request{{remote.region, remote.nonce, remote.offset, 0, 0},
                  {local, segment_.region(local).nonce, offset, length, op}};

  return started(op, enqueue_note(peer, FrameKind::ReadRequest,
                                  std::as_bytes(std::span(&request, 1)), op & 0xffff));
}

int Channel::announce(std::uint32_t peer, std::uint32_t local, std::uint64_t offset,
                      std::uint64_t length, OperationId& op) {
  if (const int error = check_peer(peer); error != 0) return error;
  if (!covers_own(local, offset, length)) return EINVAL;
  op = operations_.start(peer);
  if (op == 0) return ENOBUFS;
  const LargeHeader large{local, segment_.region(local).nonce, offset, length, op, 0};
  const int error =
      enqueue_note(peer, FrameKind::Large, std::as_bytes(std::span(&large, 1)), op & 0xffff);
  if (error == 0) {
    ++segment_.header().counters.messages_sent;
    segment_.header().counters.bytes_sent += length;
  }
  return started(op, error);
}

// Takes the operation back if its frame could not be queued.
int Channel::started(OperationId& op, int error) {
  if (error == 0) return 0;
  operations_.finish(static_cast<std::uint16_t>(op & 0xffff), error);
  operations_.test(op);
  op = 0;
  return error;
}

int Channel::end_remote(std::uint32_t peer, std::uint32_t remote_op, int error) {
  if (const int dead = check_peer(peer); dead != 0) return dead;
  const std::uint16_t index = take_descriptor(0);
  if (index == kNoIndex) return ENOBUFS;
  SendDescriptor& d = segment_.descriptor(index);
  d.kind = FrameKind::OpDone;
  d.remote_nonce = static_cast<std::uint32_t>(error);
  d.remote_op = remote_op;
  enqueue(peer, index);
  return 0;
}

}  // namespace score::pm
