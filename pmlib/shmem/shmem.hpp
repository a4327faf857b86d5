// PM between processes of one node: each context's inbox and buffers lie in its segment, which its
// peers map. Latency is that of one cache line going over. Writes go through the sender's pool like
// messages (the two copies run side by side) if the target is awake and that is quicker; else they
// are one copy by the kernel from one process's memory into the other's (cross-memory attach), as
// reads are. Where that is forbidden, everything goes through the pool.
//
// Works between contexts of one user only: segments of others cannot be attached. Not thread-safe.
#pragma once

#include "pmlib/core/messages.hpp"
#include "pmlib/core/operations.hpp"
#include "pmlib/core/regions.hpp"
#include "pmlib/core/segment.hpp"
#include "pmlib/shmem/copy_choice.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace score::pm {

// What a pool buffer is used for: the lowest bits of Segment::pool_used(). While a buffer holds a
// piece of a write, its transfer and a serial number stand above, so that a late look at it cannot
// take it for another piece; above a message stands the peer that will release it.
enum class BufferState : std::uint32_t {
  Free = 0,
  Message = 1,  // being built, or not released by the receiver yet
  Offered = 2,  // a piece of a write that is not stored yet
  Taken = 3,    // one of the two stores it now
  Stored = 4,
  Denied = 5,  // the memory is not registered
};

class Shmem {
 public:
  // Opens the segment of a peer on this node: a descriptor that the caller owns, or -1 if it is not
  // there yet. Called until it succeeds.
  using OpenPeer = std::function<int(std::uint32_t peer)>;

  // `wake_socket` is the Unix datagram socket whose name is in the own header; peers with a
  // wake_name are woken through it. `may_cross`: use cross-memory attach where it is allowed.
  Shmem(const Segment& segment, OpenPeer open_peer, int wake_socket, bool may_cross = true);
  ~Shmem();

  std::uint32_t message_bytes() const { return segment_.geometry().pool_buffer_bytes; }

  // As the functions of Channel.
  [[gnu::noinline]] int get_send_buffer(std::uint32_t peer, std::uint32_t length,
                                        std::byte** buffer);
  [[gnu::noinline]] int send();
  void cancel_send();
  // EAGAIN: no room at the peer, or it is not there yet.
  int send_datagram(std::uint32_t peer, std::span<const std::byte> bytes);

  bool is_building() const { return building_; }

  [[gnu::noinline]] bool receive(ReceivedMessage& message);
  void release(std::uint32_t ticket);
  int announce(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, std::uint64_t length,
               OperationId& op);
  int end_remote(std::uint32_t peer, std::uint32_t remote_op, int error);
  // These may have ended already when they return; else progress() ends them.
  int write(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
            std::uint32_t length, OperationId& op);
  int read(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
           std::uint32_t length, OperationId& op);

  // Stores what peers write, ends operations that are over, goes on with those that are not.
  // Returns whether anything happened.
  bool progress();
  // Stores pieces that their receivers have not looked at by cross-memory attach: before this rank
  // sleeps.
  void push_through();
  // True while a transfer reads own region `region`.
  bool is_region_in_use(std::uint32_t region) const;

  // A transfer waits for a free buffer or for room in an inbox, which no event announces.
  bool waits_for_room() const { return running_ != 0 && pieces_ == 0; }

  // True if a message or a note waits.
  bool has_input() const {
    const std::uint32_t mask = segment_.geometry().inbox_entries - 1;
    return segment_.inbox(head_ & mask).turn.load(std::memory_order_acquire) == head_ + 1;
  }

  bool is_quiet() const;

  // Looks which peers have died without leaving; each is reported once, by rank.
  bool find_dead(std::uint32_t& peer);
  // Descriptors that poll readable when a peer ends, of peers attached since the last call. They
  // are closed as soon as find_dead() has noticed it, so no one waits on them any more.
  std::vector<int> take_new_death_fds();

 private:
  struct Peer {
    std::unique_ptr<MappedSegment> mapping;
    int pidfd = -1;
    bool is_gone = false;    // has died or left
    bool can_cross = false;  // cross-memory attach is allowed
  };

  // Where the piece in a pool buffer goes.
  struct Offered {
    std::uint32_t peer = 0;
    std::uint32_t length = 0;
    RegionName to;
  };

  int attach(std::uint32_t peer);
  int push(std::uint32_t peer, std::uint16_t kind, std::uint32_t length, std::uint16_t buffer,
           std::span<const std::byte> bytes);
  void wake(const SegmentHeader& peer) const;

  struct Transfer {
    std::uint32_t peer;
    std::uint32_t local;
    std::uint64_t offset;
    RegionName remote;
    std::uint32_t length;
    bool is_write;
  };

  int transfer(const Transfer& t, OperationId& op);
  CopyWay choose_way(std::uint32_t length);
  int start_transfer(const Transfer& t, OperationId op);
  int cross(const Transfer& t);
  int copy(std::uint32_t peer, std::byte* own, std::uint64_t theirs, std::uint64_t length,
           bool is_write) const;
  // Handles the entry if it is for the library. False: it has to wait.
  bool take_entry(const InboxEntry& entry, std::uint16_t kind);
  void end_announcement(std::uint32_t source, const InboxEntry& entry);
  void store_offer(std::uint32_t source, const InboxEntry& entry);
  bool serve_read(std::uint32_t source, const InboxEntry& entry);
  int request_read(const Transfer& t, OperationId op);
  bool take_entries();
  static void postpone(std::vector<InboxEntry*>& waiting, InboxEntry& later);
  void forget_peer(std::uint32_t peer);
  void free_message_buffers(std::uint32_t peer);
  bool start_pieces(const NearTransfer& transfer);
  void end_transfer(std::uint32_t index);
  template <class F>
  static void for_each(const std::uint64_t& transfers, F f);
  std::uint16_t take_pool_buffer(std::uint32_t value);
  void pump(std::uint32_t index);
  bool offer(std::uint32_t index, std::uint32_t piece);
  bool collect_all();
  bool collect_oldest(bool is_offering);
  bool has_more(std::uint32_t index) const;
  bool collect(std::uint32_t buffer);
  bool go_on();
  bool settle(std::uint32_t index);
  bool steal(std::uint16_t buffer);
  void cross_rest(NearTransfer& t);
  void forget_transfers(std::uint32_t peer);
  bool can_cross(std::uint32_t peer) const;
  const Segment* peer_segment(std::uint32_t peer) const;

  Segment segment_;
  OpenPeer open_peer_;
  int wake_socket_;
  Operations operations_;
  std::uint32_t& head_;
  bool may_cross_;
  std::vector<Peer> peers_;
  std::uint32_t attached_ = 0;  // of them: have a mapping and are not gone
  std::vector<int> new_death_fds_;
  std::vector<Offered> offers_;  // of each pool buffer
  // Buffers with pieces, in the order of offers; an entry is void if its buffer was found stored
  // before.
  std::vector<std::uint16_t> offered_;
  std::uint32_t offered_head_ = 0, offered_tail_ = 0;
  std::uint32_t pieces_ = 0;         // buffers that hold one
  std::uint64_t running_ = 0;        // transfers, a bit each
  std::uint64_t running_bytes_ = 0;  // their lengths
  std::uint32_t serial_ = 0;         // of offers
  std::uint32_t seen_ = 0;           // entries before it were looked at by take_entries()
  std::uint32_t patient_turns_ = 0;  // of progress() since anything was stored
  std::uint32_t pool_turn_ = 0;
  CopyChoice choice_;  // the same for all peers

  // The message being built.
  bool building_ = false;
  std::uint32_t building_for_ = 0;
  std::uint32_t building_length_ = 0;
  std::uint16_t building_buffer_ = kNoIndex;
  alignas(8) std::array<std::byte, sizeof(InboxEntry::bytes)> inline_bytes_;
};

}  // namespace score::pm
