// Implements PM between processes of one node. Each context's inbox and buffers lie in its segment,
// which its peers map. The latency is that of moving one cache line between processors. Writes go
// through the sender's pool like messages (the two copies run side by side) if the target is awake
// and that is quicker. Otherwise the kernel copies once from one process's memory into the other's
// (cross-memory attach), as for reads. Where that is forbidden, everything goes through the pool.
//
// All contexts must belong to one user, because segments of others cannot be attached. The class is
// not thread-safe.
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

// States the use of a pool buffer, in the lowest bits of Segment::pool_used(). For a piece of a
// write, the bits above hold its transfer and a serial number, so that a late reader cannot mistake
// it for a different piece. For a message they hold the peer that will release it.
enum class BufferState : std::uint32_t {
  Free = 0,
  Message = 1,  // being built, or not released by the receiver yet
  Offered = 2,  // a piece of a write that is not stored yet
  Taken = 3,    // one of the two sides stores it now
  Stored = 4,
  Denied = 5,  // the memory is not registered
};

class Shmem {
 public:
  // Opens the segment of a peer on this node. Returns a descriptor that the caller owns, or -1 if
  // the segment does not exist yet. Shmem calls this until it succeeds.
  using OpenPeer = std::function<int(std::uint32_t peer)>;

  // `wake_socket` is the Unix datagram socket whose name is in the own header; peers with a
  // wake_name are woken through it. If `may_cross` is true, cross-memory attach is used where it is
  // allowed.
  Shmem(const Segment& segment, OpenPeer open_peer, int wake_socket, bool may_cross = true);
  ~Shmem();

  std::uint32_t message_bytes() const { return segment_.geometry().pool_buffer_bytes; }

  // These behave as the functions of Channel.
  [[gnu::noinline]] int get_send_buffer(std::uint32_t peer, std::uint32_t length,
                                        std::byte** buffer);
  [[gnu::noinline]] int send();
  void cancel_send();
  // Returns EAGAIN if the peer has no room or is not there yet.
  int send_datagram(std::uint32_t peer, std::span<const std::byte> bytes);

  bool is_building() const { return building_; }

  [[gnu::noinline]] bool receive(ReceivedMessage& message);
  void release(std::uint32_t ticket);
  int announce(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, std::uint64_t length,
               OperationId& op);
  int end_remote(std::uint32_t peer, std::uint32_t remote_op, int error);
  // These may have completed already when they return; otherwise progress() completes them.
  int write(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
            std::uint32_t length, OperationId& op);
  int read(std::uint32_t peer, std::uint32_t local, std::uint64_t offset, RegionName remote,
           std::uint32_t length, OperationId& op);

  // Stores the writes of peers, ends completed operations, and continues the others. Returns
  // whether anything happened.
  bool progress();
  // Copies, by cross-memory attach, the pieces that their receivers have not taken. The rank calls
  // this before it sleeps.
  void push_through();
  // Returns true while a transfer reads own region `region`.
  bool is_region_in_use(std::uint32_t region) const;

  // Returns true if a transfer waits for a free buffer or for room in an inbox. No event announces
  // either.
  bool waits_for_room() const { return running_ != 0 && pieces_ == 0; }

  // Returns true if a message or a note waits.
  bool has_input() const {
    const std::uint32_t mask = segment_.geometry().inbox_entries - 1;
    return segment_.inbox(head_ & mask).turn.load(std::memory_order_acquire) == head_ + 1;
  }

  bool is_quiet() const;

  // Finds a peer that has died without leaving; each is reported once, by rank.
  bool find_dead(std::uint32_t& peer);
  // Returns descriptors that poll readable when a peer ends, for peers attached since the last
  // call. Shmem closes them as soon as find_dead() has noticed the end, so the caller cannot wait
  // on them afterwards.
  std::vector<int> take_new_death_fds();

  // Returns true if no descriptor reports the end of some peer, so find_dead() must be called now
  // and then.
  bool has_unwatched() const { return unwatched_ > 0; }

 private:
  struct Peer {
    std::unique_ptr<MappedSegment> mapping;
    int pidfd = -1;
    bool is_gone = false;    // has died or left
    bool can_cross = false;  // cross-memory attach is allowed
  };

  // Describes the destination of the piece in a pool buffer.
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
  // Handles the entry if it is for the library. Returns false if it has to wait.
  bool take_entry(const InboxEntry& entry, std::uint16_t kind);
  void end_announcement(std::uint32_t source, const InboxEntry& entry);
  void store_offer(std::uint32_t source, const InboxEntry& entry);
  bool serve_read(std::uint32_t source, const InboxEntry& entry);
  int request_read(const Transfer& t, OperationId op);
  bool take_entries();
  static void postpone(std::vector<InboxEntry*>& waiting, InboxEntry& later);
  void forget_peer(std::uint32_t peer);
  void free_message_buffers(std::uint32_t peer);
  bool start_pieces(const LocalTransfer& transfer);
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
  void cross_rest(LocalTransfer& t);
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
  std::uint32_t attached_ = 0;  // peers that have a mapping and are not gone
  std::vector<int> new_death_fds_;
  std::uint32_t unwatched_ = 0;  // attached peers without a pidfd
  std::vector<Offered> offers_;  // one for each pool buffer
  // Buffers with pieces, in the order of offers. An entry is void if its buffer was found stored
  // before.
  std::vector<std::uint16_t> offered_;
  std::uint32_t offered_head_ = 0, offered_tail_ = 0;
  std::uint32_t pieces_ = 0;         // buffers that hold a piece
  std::uint64_t running_ = 0;        // one bit for each transfer
  std::uint64_t running_bytes_ = 0;  // their lengths
  std::uint32_t serial_ = 0;         // of the last offer
  std::uint32_t seen_ = 0;           // take_entries() has handled all entries before this one
  std::uint32_t patient_turns_ = 0;  // calls of progress() since anything was stored
  std::uint32_t pool_turn_ = 0;
  CopyChoice choice_;  // the same for all peers

  // These describe the message being built.
  bool building_ = false;
  std::uint32_t building_for_ = 0;
  std::uint32_t building_length_ = 0;
  std::uint16_t building_buffer_ = kNoIndex;
  alignas(8) std::array<std::byte, sizeof(InboxEntry::bytes)> inline_bytes_;
};

}  // namespace score::pm
