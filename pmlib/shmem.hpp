// PM between processes of one node: each context's inbox and buffers lie in its segment, which its
// peers map. Latency is that of one cache line going over; large transfers are one copy by the
// kernel from one process's memory into the other's (cross-memory attach).
//
// Works between contexts of one user only: segments of others cannot be attached. Not thread-safe.
#pragma once

#include "pmlib/channel.hpp"
#include "pmlib/operations.hpp"
#include "pmlib/regions.hpp"
#include "pmlib/segment.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace score::pm {

class Shmem {
 public:
  // Opens the segment of a peer on this node: a descriptor that the caller owns, or -1 if it is not
  // there yet. Called until it succeeds.
  using OpenPeer = std::function<int(std::uint32_t peer)>;

  // `wake_socket` is the Unix datagram socket whose name is in the own header; peers with a
  // wake_name are woken through it.
  Shmem(const Segment& segment, OpenPeer open_peer, int wake_socket);
  ~Shmem();

  std::uint32_t message_bytes() const { return segment_.geometry().pool_slot_bytes; }

  // As the functions of Channel.
  int get_send_buffer(std::uint32_t peer, std::uint32_t length, std::byte** buffer);
  int send();
  void cancel_send();

  bool is_building() const { return building_; }

  bool receive(ReceivedMessage& message);
  void release(std::uint32_t ticket);
  int announce(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, std::uint64_t length,
               OperationId& op);
  int end_remote(std::uint32_t peer, std::uint32_t remote_op, int error);
  // These two are done when they return: `op` has ended.
  int write(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
            std::uint32_t length, OperationId& op);
  int read(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
           std::uint32_t length, OperationId& op);

  // Ends the operations that peers have reported to be over.
  void take_notes();
  // True if a message or a note waits.
  bool has_input() const;
  bool is_quiet() const;

  // Looks which peers have died without leaving; each is reported once, by rank.
  bool find_dead(std::uint32_t& peer);
  // Descriptors that poll readable when a peer dies, for those attached so far.
  std::vector<int> death_fds() const;

 private:
  struct Peer {
    std::unique_ptr<MappedSegment> mapping;
    int pidfd = -1;
    bool reported_dead = false;
  };

  int attach(std::uint32_t peer);
  int push(std::uint32_t peer, std::uint16_t kind, std::uint32_t length, std::uint16_t slot,
           std::span<const std::byte> bytes);
  void wake(const SegmentHeader& peer) const;
  int transfer(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
               std::uint32_t length, OperationId& op, bool is_write);
  int copy(std::uint32_t peer, std::byte* own, std::uint64_t theirs, std::uint64_t length,
           bool is_write) const;
  bool take_note(InboxEntry& entry);
  const Segment* peer_segment(std::uint32_t peer) const;

  Segment segment_;
  OpenPeer open_peer_;
  int wake_socket_;
  Operations operations_;
  std::uint32_t& head_;
  std::vector<Peer> peers_;
  std::uint32_t pool_turn_ = 0;

  // The message being built.
  bool building_ = false;
  std::uint32_t building_for_ = 0;
  std::uint32_t building_length_ = 0;
  std::uint16_t building_slot_ = kNoIndex;
  alignas(8) std::array<std::byte, sizeof(InboxEntry::bytes)> inline_bytes_;
};

}  // namespace score::pm
