// RemoteMemory implements remote memory over a channel: writes, reads and announcements of large
// messages, both those requested here and those that arrive.
//
// A region is named by index and nonce. Every frame that names one is checked against the table
// when it arrives: a frame for memory that is no longer registered is denied and never stored. An
// operation is named by index and tag, so that a late answer cannot end a newer operation.
#pragma once

#include "pmlib/channel/receive_queue.hpp"
#include "pmlib/sending/channel_state.hpp"
#include "pmlib/sending/send_window.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace score::pm {

class RemoteMemory {
 public:
  // All arguments must outlive the object.
  RemoteMemory(ChannelState& state, SendQueues& queues, SendWindow& window, ReceiveQueue& received)
      : state_(state), queues_(queues), window_(window), received_(received) {}

  // Writes `length` bytes at `offset` of own region `local` into `remote`'s memory. The memory must
  // stay unchanged until the operation is done. Returns ENOBUFS if nothing is free; the caller must
  // call progress() and try again.
  int write(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
            std::uint32_t length, OperationId& op);
  // Reads `length` bytes of `remote` into own memory.
  int read(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
           std::uint32_t length, OperationId& op);
  // Sends `length` > 0 bytes at `offset` of own region `local` as messages, which arrive in order
  // like all messages. Each consists of `head` and as many of the next bytes as fit in a message.
  // The operation is done when the receiver has stored all of them. Errors and the rule for the
  // memory are those of write().
  int send_parts(std::uint32_t peer, std::uint32_t local, std::uint64_t offset,
                 std::uint32_t length, const PartHead& head, OperationId& op);
  // Announces own memory as one large message; the operation is done when the receiver has fetched
  // it.
  int announce(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, std::uint64_t length,
               OperationId& op);
  // Ends an operation of `peer` with `error`, such as an announcement that was fetched. Returns
  // ENOBUFS like write(); the caller must then try again later, or the announcement never ends.
  int end_remote(std::uint32_t peer, std::uint32_t remote_op, int error);

  // --- what arrives

  // Returns true if the payload of the next frame in sequence may be acted upon.
  bool is_allowed(const FrameHeader& h, std::span<const std::byte> payload) const;
  // Returns true if a frame of `kind` can be answered, because a descriptor is left for one more
  // read.
  bool can_answer(FrameKind kind) const;
  // Stores a Write that is_allowed().
  void store_write(std::uint32_t source, std::span<const std::byte> payload);

  // A frame from the middle of a write determines everything of the next frame except its bytes,
  // unless the next one is the last of the write. This expectation is not part of a saved context.
  bool expects_middle() const { return middle_.place == RmaHeader::kMiddle; }

  // Frame `sequence` of `source` follows the Write with `payload`, which was stored.
  void expect_middle(std::uint32_t source, std::uint32_t sequence,
                     std::span<const std::byte> payload);
  // Returns the destination of the bytes behind the RmaHeader of this Write, or null if the frame
  // is not the expected one. The frame is not verified yet: the destination belongs to the write
  // and may be overwritten.
  std::byte* place_middle(std::uint32_t source, std::uint32_t sequence,
                          std::span<const std::byte> payload) const;
  // The channel calls this when the bytes are in place and verified.
  void placed_middle(std::span<const std::byte> payload);

  // Ends the operation of an OpDone that is_allowed().
  void end_operation(std::uint32_t source, std::span<const std::byte> payload);
  // Queues answers to the waiting reads, as many as there are descriptors.
  [[gnu::noinline]] void answer_reads();

 private:
  bool covers_own(std::uint32_t region, std::uint64_t offset, std::uint64_t length) const;
  std::uint16_t start(std::uint32_t peer, OperationId& op);
  int enqueue_note(std::uint32_t peer, FrameKind kind, std::span<const std::byte> bytes,
                   OperationId& op);
  bool answer(const ReceivedMessage& read);

  ChannelState& state_;
  SendQueues& queues_;
  SendWindow& window_;
  ReceiveQueue& received_;
  RmaHeader middle_;  // of the expected frame, if it is a middle one
  std::uint32_t middle_source_ = 0;
  std::uint32_t middle_sequence_ = 0;
  std::size_t middle_bytes_ = 0;  // of its payload
};

}  // namespace score::pm
