#include "pmlib/channel/remote_memory.hpp"

#include "pmlib/core/regions.hpp"
#include "pmlib/wire/fast_header.hpp"

#include <cerrno>
#include <cstring>

namespace score::pm {

namespace {

bool covers(const Segment& segment, const RmaHeader& rma, std::uint64_t length) {
  return region_covers(segment, rma.region, rma.nonce, rma.offset, length);
}

}  // namespace

bool RemoteMemory::covers_own(std::uint32_t region, std::uint64_t offset,
                              std::uint64_t length) const {
  return region < state_.segment.geometry().regions &&
         region_covers(state_.segment, region, state_.segment.region(region).nonce, offset, length);
}

// --- start of operations -----------------------------------------------------------------------

// Takes a descriptor and an operation; returns kNoIndex if either is missing.
std::uint16_t RemoteMemory::start(std::uint32_t peer, OperationId& op) {
  const std::uint16_t index = queues_.take(SendQueues::For::Application);
  if (index == kNoIndex) return kNoIndex;
  op = state_.operations.start(peer);
  if (op != 0) return index;
  queues_.free(index);
  return kNoIndex;
}

int RemoteMemory::write(std::uint32_t peer, std::uint32_t local, std::uint64_t offset,
                        RegionName remote, std::uint32_t length, OperationId& op) {
  if (const int error = state_.check_peer(peer); error != 0) return error;
  if (!covers_own(local, offset, length)) return EINVAL;
  const std::uint16_t index = start(peer, op);
  if (index == kNoIndex) return ENOBUFS;
  SendDescriptor& d = state_.segment.descriptor(index);
  d.kind = FrameKind::Write;
  d.op = static_cast<std::uint16_t>(op & 0xffff);
  d.length = length;
  d.local_region = local;
  d.local_offset = offset;
  d.remote_region = remote.region;
  d.remote_nonce = remote.nonce;
  d.remote_offset = remote.offset;
  window_.enqueue(peer, index);
  return 0;
}

int RemoteMemory::send_parts(std::uint32_t peer, std::uint32_t local, std::uint64_t offset,
                             std::uint32_t length, const PartHead& head, OperationId& op) {
  if (const int error = state_.check_peer(peer); error != 0) return error;
  if (length == 0 || !covers_own(local, offset, length)) return EINVAL;
  const std::uint16_t index = start(peer, op);
  if (index == kNoIndex) return ENOBUFS;
  SendDescriptor& d = state_.segment.descriptor(index);
  d.kind = FrameKind::Message;
  d.op = static_cast<std::uint16_t>(op & 0xffff);
  d.length = length;
  d.local_region = local;
  d.local_offset = offset;
  d.set_part_head(head);
  window_.enqueue(peer, index);
  Counters& c = state_.counters();
  c.messages_sent += d.frames;
  c.bytes_sent += length + d.frames * sizeof head;
  return 0;
}

// Queues a small frame of the library's own with `bytes` as the payload of `kind`. Cancels the
// operation if there is no buffer for it.
int RemoteMemory::enqueue_note(std::uint32_t peer, FrameKind kind, std::span<const std::byte> bytes,
                               OperationId& op) {
  const std::uint16_t index = queues_.take_with(bytes);
  if (index == kNoIndex) {
    state_.operations.finish(static_cast<std::uint16_t>(op & 0xffff), ENOBUFS);
    state_.operations.test(op);
    op = 0;
    return ENOBUFS;
  }
  SendDescriptor& d = state_.segment.descriptor(index);
  d.kind = kind;
  d.op = static_cast<std::uint16_t>(op & 0xffff);
  window_.enqueue(peer, index);
  return 0;
}

int RemoteMemory::read(std::uint32_t peer, std::uint32_t local, std::uint64_t offset,
                       RegionName remote, std::uint32_t length, OperationId& op) {
  if (const int error = state_.check_peer(peer); error != 0) return error;
  if (!covers_own(local, offset, length)) return EINVAL;
  op = state_.operations.start(peer);
  if (op == 0) return ENOBUFS;

  struct {
    RmaHeader from;
    ReadTarget to;
  } const request{{remote.region, remote.nonce, remote.offset, 0, 0},
                  {local, state_.segment.region(local).nonce, offset, length, op}};

  return enqueue_note(peer, FrameKind::ReadRequest, std::as_bytes(std::span(&request, 1)), op);
}

int RemoteMemory::announce(std::uint32_t peer, std::uint32_t local, std::uint64_t offset,
                           std::uint64_t length, OperationId& op) {
  if (const int error = state_.check_peer(peer); error != 0) return error;
  if (!covers_own(local, offset, length)) return EINVAL;
  op = state_.operations.start(peer);
  if (op == 0) return ENOBUFS;
  const LargeHeader large{local, state_.segment.region(local).nonce, offset, length, op, 0};
  const int error = enqueue_note(peer, FrameKind::Large, std::as_bytes(std::span(&large, 1)), op);
  if (error != 0) return error;
  ++state_.counters().messages_sent;
  state_.counters().bytes_sent += length;
  return 0;
}

int RemoteMemory::end_remote(std::uint32_t peer, std::uint32_t remote_op, int error) {
  if (const int dead = state_.check_peer(peer); dead != 0) return dead;
  const std::uint16_t index = queues_.take(SendQueues::For::Peer);
  if (index == kNoIndex) return ENOBUFS;
  SendDescriptor& d = state_.segment.descriptor(index);
  d.kind = FrameKind::OpDone;
  d.remote_nonce = static_cast<std::uint32_t>(error);
  d.remote_op = remote_op;
  window_.enqueue(peer, index);
  return 0;
}

// --- what arrives ------------------------------------------------------------------------------

bool RemoteMemory::is_allowed(const FrameHeader& h, std::span<const std::byte> payload) const {
  switch (h.kind) {
    case FrameKind::Write: {
      if (payload.size() < sizeof(RmaHeader)) return false;
      return covers(state_.segment, load<RmaHeader>(payload.data()),
                    payload.size() - sizeof(RmaHeader));
    }
    case FrameKind::ReadRequest: {
      if (payload.size() != sizeof(RmaHeader) + sizeof(ReadTarget)) return false;
      const auto target = load<ReadTarget>(payload.data() + sizeof(RmaHeader));
      return covers(state_.segment, load<RmaHeader>(payload.data()), target.length);
    }
    case FrameKind::OpDone:
      return payload.size() == sizeof(RmaHeader);
    case FrameKind::Large:
      return payload.size() == sizeof(LargeHeader);
    default:
      return payload.size() <= state_.payload_bytes();
  }
}

// Each read that waits for its answer will need a descriptor.
bool RemoteMemory::can_answer(FrameKind kind) const {
  return kind != FrameKind::ReadRequest || state_.header().free_descriptors > received_.reads();
}

void RemoteMemory::store_write(std::uint32_t source, std::span<const std::byte> payload) {
  const auto rma = load<RmaHeader>(payload.data());
  const auto bytes = payload.subspan(sizeof rma);
  if (!bytes.empty()) {
    std::memcpy(memory_of(state_.segment, rma.region, rma.offset), bytes.data(), bytes.size());
  }
  state_.counters().rma_bytes_written += bytes.size();
  if (rma.place == RmaHeader::kReplyEnd) {
    state_.operations.finish_for(source, WriteEnd(rma).operation(), 0);
  }
}

void RemoteMemory::expect_middle(std::uint32_t source, std::uint32_t sequence,
                                 std::span<const std::byte> payload) {
  middle_ = load<RmaHeader>(payload.data());
  middle_.offset += payload.size() - sizeof middle_;
  ++WriteMiddle(middle_).frames_before();
  middle_source_ = source;
  middle_sequence_ = sequence;
  middle_bytes_ = payload.size();
}

std::byte* RemoteMemory::place_middle(std::uint32_t source, std::uint32_t sequence,
                                      std::span<const std::byte> payload) const {
  if (source != middle_source_ || sequence != middle_sequence_ || payload.size() != middle_bytes_ ||
      std::memcmp(payload.data(), &middle_, sizeof middle_) != 0 ||
      !covers(state_.segment, middle_, payload.size() - sizeof middle_)) {
    return nullptr;
  }
  return memory_of(state_.segment, middle_.region, middle_.offset);
}

void RemoteMemory::placed_middle(std::span<const std::byte> payload) {
  state_.counters().rma_bytes_written += payload.size() - sizeof middle_;
  expect_middle(middle_source_, middle_sequence_ + 1, payload);
}

void RemoteMemory::end_operation(std::uint32_t source, std::span<const std::byte> payload) {
  const auto rma = load<RmaHeader>(payload.data());
  const OperationEnd end(rma);
  state_.operations.finish_for(source, end.operation(), static_cast<int>(end.error() & 0xff));
}

void RemoteMemory::answer_reads() {
  while (received_.has_reads() && answer(received_.first_read())) received_.pop_read();
}

// Returns false if there is no descriptor for the answer yet.
bool RemoteMemory::answer(const ReceivedMessage& read) {
  const auto rma = load<RmaHeader>(read.bytes.data());
  const auto target = load<ReadTarget>(read.bytes.data() + sizeof rma);
  if (state_.peer(read.source).dead != 0) return true;
  if (!covers(state_.segment, rma, target.length)) {
    return end_remote(read.source, target.op, EACCES) == 0;
  }
  const std::uint16_t index = queues_.take(SendQueues::For::Peer);
  if (index == kNoIndex) return false;
  SendDescriptor& d = state_.segment.descriptor(index);
  d.kind = FrameKind::Write;
  d.notify = 1;
  d.length = target.length;
  d.local_region = rma.region;
  d.local_offset = rma.offset;
  d.remote_region = target.region;
  d.remote_nonce = target.nonce;
  d.remote_offset = target.offset;
  d.remote_op = target.op;
  window_.enqueue(read.source, index);
  return true;
}

}  // namespace score::pm
