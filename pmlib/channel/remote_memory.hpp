// Remote memory over a channel: writes, reads and announcements of large messages, as they are
// asked for here and as they arrive.
//
// A region is named by index and nonce. Every frame that names one is checked against the table
// when it arrives: a frame for memory that is not registered any more is denied, never stored. An
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
  // All outlive the object.
  RemoteMemory(ChannelState& state, SendQueues& queues, SendWindow& window, ReceiveQueue& received)
      : state_(state), queues_(queues), window_(window), received_(received) {}

  // Writes `length` bytes at `offset` of own region `local` into `remote`'s memory. The memory must
  // stay unchanged until the operation is done. ENOBUFS: nothing is free, progress() and try again.
  int write(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
            std::uint32_t length, OperationId& op);
  // Reads `length` bytes of `remote` into own memory.
  int read(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
           std::uint32_t length, OperationId& op);
  // Sends `length` > 0 bytes at `offset` of own region `local` as messages, which arrive one after
  // the other like all messages: each is `head` and the next bytes, as many as one message takes.
  // Errors and memory as of write(); done when all are stored at the receiver.
  int send_parts(std::uint32_t peer, std::uint32_t local, std::uint64_t offset,
                 std::uint32_t length, const PartHead& head, OperationId& op);
  // Announces own memory as one large message; done when the receiver has fetched it.
  int announce(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, std::uint64_t length,
               OperationId& op);
  // Ends an operation of `peer` with `error`: an announcement that was fetched. ENOBUFS as above;
  // the announcement must not stay unreleased until it works.
  int end_remote(std::uint32_t peer, std::uint32_t remote_op, int error);

  // --- what arrives

  // May the payload of the next frame in sequence be acted upon?
  bool is_allowed(const FrameHeader& h, std::span<const std::byte> payload) const;
  // Can a frame of `kind` be answered: is a descriptor left for one read more?
  bool can_answer(FrameKind kind) const;
  // Stores a Write that is_allowed().
  void store_write(std::uint32_t source, std::span<const std::byte> payload);

  // A frame from the middle of a write says all of the next one but its bytes, unless that is the
  // last of the write. What is expected after the last frame in sequence; not part of a saved
  // context.
  bool expects_middle() const { return middle_.place == RmaHeader::kMiddle; }

  // Frame `sequence` of `source` follows the Write with `payload`, which was stored.
  void expect_middle(std::uint32_t source, std::uint32_t sequence,
                     std::span<const std::byte> payload);
  // Where the bytes behind the RmaHeader of this Write belong; null if it is not the expected one.
  // Nothing is believed yet: what lies there belongs to the write and may be overwritten.
  std::byte* place_middle(std::uint32_t source, std::uint32_t sequence,
                          std::span<const std::byte> payload) const;
  // The bytes are there, and are what was sent.
  void placed_middle(std::span<const std::byte> payload);

  // An OpDone that is_allowed().
  void end_operation(std::uint32_t source, std::span<const std::byte> payload);
  // Queues answers to the reads that wait, as many as there are descriptors.
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
  RmaHeader middle_;  // of the frame that is expected, if it is one of the middle
  std::uint32_t middle_source_ = 0;
  std::uint32_t middle_sequence_ = 0;
  std::size_t middle_bytes_ = 0;  // of its payload
};

}  // namespace score::pm
