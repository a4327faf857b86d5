// A context segment holds all state of one endpoint of a job's network, in one contiguous piece of
// memory without pointers. A context is saved by copying these bytes and restored by copying them
// back, even into a different process or on a different node. docs/reference/pm.md describes the
// layout.
//
// There are two kinds of readers. The owner maps the segment and trusts it, because it wrote it or
// checked it with validate_image(). scored reads it while the owner, which may be hostile, is
// running. It uses only read_summary() and the functions after it, which copy by pread and check
// every number before use.
#pragma once

#include "pmlib/core/engine.hpp"
#include "pmlib/core/peer_set.hpp"
#include "pmlib/wire/frame.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

namespace score::pm {

constexpr std::uint64_t kSegmentMagic = 0x31305458'54434d50;  // "PMCTXT01"
constexpr std::uint32_t kSegmentVersion = 5;
constexpr std::uint16_t kNoIndex = 0xffff;

// Geometry gives the sizes of the parts of a segment. It is fixed when the segment is created.
struct Geometry {
  std::uint32_t size = 1;              // ranks of the job, 1 .. kMaxRanks
  std::uint32_t payload_bytes = 1424;  // most bytes per frame; MTU minus headers
  std::uint32_t send_buffers = 64;     // messages being sent
  std::uint32_t receive_buffers = 64;  // messages received and not yet released
  std::uint32_t descriptors = 128;     // entries of send queues: messages, writes, replies
  std::uint32_t regions = 128;         // registered memory
  std::uint32_t operations = 128;      // pending remote memory operations
  std::uint32_t inbox_entries = 512;   // shared-memory inbox, a power of two
  std::uint32_t pool_buffers = 16;     // shared-memory buffers for messages that do not fit inline
  std::uint32_t pool_buffer_bytes = 8192;
  std::uint32_t links = 1;  // to other nodes; see trunk_device.hpp
  bool operator==(const Geometry&) const = default;
};

constexpr std::uint32_t kMaxRanks = 65536;
constexpr std::uint32_t kMaxLinks = 4;
constexpr std::uint32_t kMinPayload = 256;
constexpr std::uint32_t kMaxPayload = 65000;

// Route is the network by which a peer is reached.
enum class Route : std::uint8_t { None = 0, Shmem = 1, Packet = 2, Self = 3 };

// DeviceKind is the packet device of a context; None if all peers are on this node.
enum class DeviceKind : std::uint8_t { None = 0, Udp = 1, Ethernet = 2, Ofi = 3 };

struct DeviceConfig {
  DeviceKind kind = DeviceKind::None;
  std::array<char, 15> interface {};  // Ethernet: its name, ends with 0
  std::array<char, 32> provider{};    // libfabric: its name, ends with 0
};

// A LinkConfig describes a further link in addition to the device.
struct LinkConfig {
  DeviceKind kind = DeviceKind::None;  // not None
  std::array<char, 15> name{};         // interface (Ethernet) or provider (libfabric); ends with 0
};

using LinkConfigs = std::array<LinkConfig, kMaxLinks - 1>;

// LinkWeights gives each link's share of the frames relative to the other links, the device first;
// 0 counts as 1.
using LinkWeights = std::array<std::uint8_t, kMaxLinks>;

// A PeerAddress is where a packet device finds a peer. It is written when the job is created and
// kept on restore.
struct PeerAddress {
  std::array<std::uint8_t, 6> bytes{};  // UDP: IPv4 and port in network order; Ethernet: MAC
  bool operator==(const PeerAddress&) const = default;
};

// PeerState is all state about one peer.
struct PeerState {
  SendSide<std::uint32_t> send;        // 40 bytes
  ReceiveSide<std::uint32_t> receive;  // 8
  std::uint16_t head = kNoIndex;       // oldest descriptor not acknowledged
  std::uint16_t tail = kNoIndex;       // newest descriptor
  Route route : 4 = Route::None;
  std::uint8_t dead : 4 = 0;  // 1 once the peer was declared dead, 2 when that was reported
  std::uint8_t unacked = 0;   // frames stored since the last ACK; saturates
  PeerAddress address;
};

// The cost of a peer is these 60 bytes and a bit in each of four sets.
static_assert(sizeof(PeerState) == 60, "a peer is promised to cost at most 64 bytes");

// A PartHead leads the payload of each message that is a part of longer memory.
struct PartHead {
  std::array<std::uint64_t, 2> words{};
};

// A SendDescriptor is one entry of a send queue. It is a message in a buffer, a remote write of
// many frames, or registered memory that is sent as several messages.
struct SendDescriptor {
  std::uint32_t first = 0;        // number of its first frame
  std::uint32_t frames = 1;       // how many numbers it covers
  std::uint32_t length = 0;       // bytes of payload in total, without RmaHeaders
  std::uint32_t payload_crc = 0;  // of a buffer's payload
  std::uint16_t next = kNoIndex;
  std::uint16_t buffer = kNoIndex;  // send buffer, if the payload lies in one
  FrameKind kind = FrameKind::Void;
  std::uint8_t notify = 0;      // its last frame completes `remote_op` at the receiver
  std::uint16_t op = kNoIndex;  // own operation completed by the last acknowledgement
  std::uint32_t local_region = 0;
  std::uint32_t remote_region = 0;
  std::uint32_t remote_nonce = 0;
  std::uint32_t remote_op = 0;
  std::uint64_t local_offset = 0;
  std::uint64_t remote_offset = 0;

  // Returns true for registered memory that is sent as messages. Each message has the PartHead,
  // which is stored in the fields for remote memory, and the next bytes of the own region.
  bool is_in_parts() const { return kind == FrameKind::Message && buffer == kNoIndex; }

  void set_part_head(const PartHead& head) {
    remote_region = static_cast<std::uint32_t>(head.words[0]);
    remote_nonce = static_cast<std::uint32_t>(head.words[0] >> 32);
    remote_offset = head.words[1];
  }

  // Returns the bytes of registered memory that each of its frames carries, or 0 if it has none.
  std::uint32_t bytes_per_frame(std::uint32_t payload_bytes) const {
    if (kind == FrameKind::Write) return payload_bytes - std::uint32_t{sizeof(RmaHeader)};
    return is_in_parts() ? payload_bytes - std::uint32_t{sizeof(PartHead)} : 0;
  }
};

static_assert(sizeof(SendDescriptor) == 56);

// A RegionEntry is memory of the owner that others may read and write while `references` > 0.
struct RegionEntry {
  std::uint64_t address = 0;  // in the owner's address space; rebound after a restore elsewhere
  std::uint64_t length = 0;   // bytes; 0 = entry not in use
  std::uint32_t nonce = 0;
  std::uint32_t references = 0;  // 0 = only remembered by the pin-down cache
  std::uint64_t last_used = 0;   // order of use, for the cache
};

struct Operation {
  std::uint16_t tag = 1;   // distinguishes users of one entry
  std::uint8_t state = 0;  // OperationState
  std::uint8_t error = 0;  // errno if it failed
  std::uint32_t peer = 0;
  std::uint32_t then_end = 0;  // operation of the peer to be ended after this one; 0 = none
};

enum class OperationState : std::uint8_t { Free = 0, Running = 1, Done = 2 };

// A LocalTransfer is a write to a peer of this node that goes through the pool, piece by piece. It
// is an own write, or the answer to a read that the peer requested. See shmem_rma.cpp.
struct LocalTransfer {
  std::uint32_t running = 0;  // 0 = entry not in use
  std::uint32_t peer = 0;
  std::uint32_t op = 0;         // own operation that it ends; 0 = none
  std::uint32_t remote_op = 0;  // the peer's operation that it ends; 0 = none
  std::uint32_t length = 0;     // bytes
  std::uint32_t given = 0;      // bytes put into buffers so far
  std::uint16_t pieces = 0;     // buffers that are not stored yet
  std::uint16_t error = 0;      // errno
  std::uint32_t local_region = 0;
  std::uint32_t remote_region = 0;
  std::uint32_t remote_nonce = 0;
  std::uint64_t local_offset = 0;
  std::uint64_t remote_offset = 0;
};

// Each flag has its own cache line because two processors write it in turn.
struct alignas(64) PoolFlag {
  std::atomic<std::uint32_t> used;
};

static_assert(sizeof(LocalTransfer) == 56);
constexpr std::uint32_t kNearTransfers = 64;

// A ReceivedBuffer describes a message that was received and is not released yet.
struct ReceivedBuffer {
  std::uint32_t source = 0;
  std::uint16_t length = 0;
  std::uint16_t next = kNoIndex;  // in the free list or the queue of delivered messages
  FrameKind kind = FrameKind::Message;
  std::uint8_t lent = 0;  // the application is reading it
  std::uint16_t reserved = 0;
};

// An InboxEntry is one cache line of the shared-memory inbox, filled by a peer on the same node.
struct alignas(64) InboxEntry {
  std::atomic<std::uint32_t> turn;  // lap protocol, see shmem.cpp
  std::uint32_t source;
  std::uint32_t length;
  std::uint16_t kind;    // InboxKind
  std::uint16_t buffer;  // sender's pool buffer, if the bytes lie there
  std::array<std::byte, 48> bytes;
};

static_assert(sizeof(InboxEntry) == 64);

struct FifoList {
  std::uint16_t head = kNoIndex;
  std::uint16_t tail = kNoIndex;
};

// Each counter only grows; statistics, scored and tests read them.
struct Counters {
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t frames_sent = 0;
  std::uint64_t frames_received = 0;
  std::uint64_t frames_resent = 0;
  std::uint64_t time_outs = 0;
  std::uint64_t stops_sent = 0;
  std::uint64_t loses_sent = 0;
  std::uint64_t dropped_malformed = 0;
  std::uint64_t dropped_foreign = 0;
  std::uint64_t dropped_stale = 0;
  std::uint64_t dropped_corrupt = 0;
  std::uint64_t dropped_strange = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t denied = 0;
  std::uint64_t rma_bytes_written = 0;
  std::uint64_t registration_hits = 0;
  std::uint64_t registration_misses = 0;
  std::uint64_t wakeups = 0;
  std::uint64_t sleeps = 0;
  std::uint64_t dropped_forged = 0;
  std::uint64_t dropped_by_kernel = 0;   // as of the last reading of the counters
  std::uint64_t datagrams_sent = 0;      // one per destination
  std::uint64_t datagrams_received = 0;  // by the application
  std::uint64_t datagrams_dropped = 0;   // no receive buffer was free
};

// ContextState is what the owner of a context is doing.
enum class ContextState : std::uint32_t {
  Works = 0,
  Rests =
      1,  // sleeps, or polls in vain and sleeps in between; a timer or something else may end it
  Waits = 2,  // sleeps until a message comes: nothing else can end it
};

// This time after a sleep is long enough for a rank to check for messages and sleep again. It is
// short enough that a sleep outside of PM is not mistaken for one inside.
constexpr std::uint64_t kRestGraceUs = 10'000;

// A WaitNote describes the message that a waiting rank waits for, as the rank states it.
struct WaitNote {
  static constexpr std::int64_t kAny = -1;  // any, or not known

  std::array<char, 32> call{};  // the function that waits, ends with 0
  std::int64_t source = kAny;   // rank
  std::int64_t tag = kAny;
  std::uint64_t bytes = 0;  // size of the buffer to be filled; 0 = not known

  friend bool operator==(const WaitNote&, const WaitNote&) = default;
};

// A WaitNotice holds the note in a context. `version` is odd while the owner writes it.
struct WaitNotice {
  std::atomic<std::uint64_t> version;
  WaitNote note;
};

static_assert(sizeof(WaitNotice) == 64, "one cache line, one read");

// SegmentHeader is the first page of the segment.
struct SegmentHeader {
  std::uint64_t magic = kSegmentMagic;
  std::uint32_t version = kSegmentVersion;
  std::uint32_t header_bytes = 0;
  std::uint64_t total_bytes = 0;
  Geometry geometry;
  LinkWeights link_weights{};

  // These fields identify the endpoint. A restore keeps those of the target.
  std::uint64_t key = 0;
  std::uint32_t generation = 0;
  std::uint32_t rank = 0;
  std::uint16_t channel = 0;
  std::uint16_t window = 0;  // EngineLimits::window
  FrameAuth auth = FrameAuth::Key;
  // After this silence a peer counts as dead; 0 means never. See network.hpp.
  std::uint16_t peer_timeout_s = 0;
  DeviceConfig device{};
  LinkConfigs more_links{};

  // scored writes these fields while the owner does not run.
  alignas(64) std::atomic<std::uint64_t> stopped_us;  // total time for which the job was stopped
  std::atomic<std::uint32_t> resumes;                 // how often the job was resumed

  // The owner writes these fields; scored and the peers on this node read them.
  alignas(64) std::atomic<ContextState> state;
  std::atomic<std::uint32_t> sleeping;   // 1 = a sender must wake the owner
  std::atomic<std::uint32_t> owner_pid;  // 0 = no process attached yet
  std::atomic<std::uint32_t> closed;     // 1 = the owner has left in good order
  std::array<char, 16> wake_name;        // abstract Unix datagram address, not ended by 0
  std::atomic<std::uint64_t> rested_us;  // CLOCK_MONOTONIC_COARSE at the end of the last sleep
  std::atomic<std::uint64_t> polled_us;  // processor time of polling in vain; see PollEpisode
  alignas(64) WaitNotice wait;           // valid while `state` is Waits

  // These fields serve allocation.
  alignas(64) std::uint16_t free_descriptor = 0;  // list heads
  std::uint16_t free_send_buffer = 0;
  std::uint16_t free_receive_buffer = 0;
  FifoList delivered;  // messages for the application
  FifoList requests;   // reads requested by others, waiting for a descriptor
  SharedRoom room;
  std::uint16_t free_descriptors = 0;  // how many
  std::uint32_t turn = 0;              // the rank that gets the next GO
  std::uint64_t use_clock = 0;         // orders uses of regions
  std::uint64_t nonce_state = 0;
  std::uint32_t live_operations = 0;

  // These fields belong to the shared-memory inbox.
  alignas(64) std::atomic<std::uint32_t> inbox_tail;  // next place, taken by senders
  alignas(64) std::uint32_t inbox_head = 0;           // next to read; only the owner uses it

  alignas(64) Counters counters;
};

static_assert(sizeof(SegmentHeader) <= 4096);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// SegmentLayout gives the offsets of the parts. It is computed from the geometry and never stored,
// so it cannot be forged.
struct SegmentLayout {
  std::uint64_t peers = 0, sets = 0, descriptors = 0, regions = 0, operations = 0;
  std::uint64_t received = 0, send_buffers = 0, receive_buffers = 0, inbox = 0, pool_free = 0,
                pool = 0;
  std::uint64_t transfers = 0, link_addresses = 0;
  std::uint64_t total = 0;         // bytes, a multiple of 4096
  std::uint32_t buffer_bytes = 0;  // header and payload, a multiple of 64

  // Returns nothing if a number is outside its limits.
  static std::optional<SegmentLayout> of(const Geometry& geometry);
};

// PeerSetId names the sets of peers that are kept in the segment.
enum class PeerSetId : std::uint32_t { Armed, AckOwed, Ready, Refused, kCount };

// A Segment gives typed access to a segment's bytes. It can be copied and does not own the memory.
class Segment {
 public:
  Segment() = default;

  // `base` must hold layout.total bytes, 64-byte aligned, and outlive the object.
  Segment(std::byte* base, const Geometry& geometry, const SegmentLayout& layout)
      : base_(base), geometry_(geometry), layout_(layout) {}

  SegmentHeader& header() const { return *at<SegmentHeader>(0); }

  const Geometry& geometry() const { return geometry_; }

  const SegmentLayout& layout() const { return layout_; }

  PeerState& peer(std::uint32_t rank) const { return at<PeerState>(layout_.peers)[rank]; }

  SendDescriptor& descriptor(std::uint16_t i) const {
    return at<SendDescriptor>(layout_.descriptors)[i];
  }

  RegionEntry& region(std::uint32_t i) const { return at<RegionEntry>(layout_.regions)[i]; }

  Operation& operation(std::uint32_t i) const { return at<Operation>(layout_.operations)[i]; }

  ReceivedBuffer& received(std::uint16_t i) const {
    return at<ReceivedBuffer>(layout_.received)[i];
  }

  InboxEntry& inbox(std::uint32_t i) const { return at<InboxEntry>(layout_.inbox)[i]; }

  // Returns the address at which link `link` < geometry().links finds `rank`.
  PeerAddress& link_address(std::size_t link, std::uint32_t rank) const {
    if (link == 0) return peer(rank).address;
    return at<PeerAddress>(layout_.link_addresses)[(link - 1) * geometry_.size + rank];
  }

  LocalTransfer& transfer(std::uint32_t i) const { return at<LocalTransfer>(layout_.transfers)[i]; }

  // Returns the state of a pool buffer; see shmem.hpp.
  std::atomic<std::uint32_t>& pool_used(std::uint32_t i) const {
    return at<PoolFlag>(layout_.pool_free)[i].used;
  }

  std::byte* pool_buffer(std::uint32_t i) const {
    return base_ + layout_.pool + std::uint64_t{i} * geometry_.pool_buffer_bytes;
  }

  // The buffer holds a FrameHeader, then the payload.
  std::byte* send_buffer(std::uint16_t i) const {
    return base_ + layout_.send_buffers + std::uint64_t{i} * layout_.buffer_bytes;
  }

  std::byte* receive_buffer(std::uint16_t i) const {
    return base_ + layout_.receive_buffers + std::uint64_t{i} * layout_.buffer_bytes;
  }

  PeerSet set(PeerSetId id) const;

  // Replaces the note about the message that the owner waits for. Only the owner may call it.
  void write_wait_note(const WaitNote& note) const;

  std::span<std::byte> bytes() const { return {base_, static_cast<std::size_t>(layout_.total)}; }

 private:
  template <class T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }

  std::byte* base_ = nullptr;
  Geometry geometry_;
  SegmentLayout layout_;
};

// A SegmentIdentity gives the initial values of a new segment.
struct SegmentIdentity {
  std::uint64_t key = 0;
  std::uint32_t generation = 1;
  std::uint32_t rank = 0;
  std::uint16_t channel = 0;
  std::uint16_t window = 192;
  FrameAuth auth = FrameAuth::Key;
  std::uint16_t peer_timeout_s = 0;
  DeviceConfig device{};
  LinkConfigs more_links{};
  LinkWeights link_weights{};
  std::uint64_t nonce_seed = 0;  // seed of region nonces and jitter; 0: from the kernel
};

// Fills `memory` with an empty context. The memory must be zero and layout.total bytes long.
Segment format_segment(std::byte* memory, const Geometry& geometry, const SegmentLayout& layout,
                       const SegmentIdentity& identity);

// A MappedSegment unmaps the segment and closes its descriptor when it is destroyed.
class MappedSegment {
 public:
  // Creates a memfd that is sealed against shrinking and growing. On failure all three functions
  // return null and set `error` to an errno.
  static std::unique_ptr<MappedSegment> create(const Geometry& geometry,
                                               const SegmentIdentity& identity, int& error);
  // Creates a file that only the user may open, for processes that share no ancestor.
  static std::unique_ptr<MappedSegment> create_at(const std::string& path, const Geometry& geometry,
                                                  const SegmentIdentity& identity, int& error);
  // Maps the segment in `fd` after checks of owner, size and header. Takes the descriptor over,
  // even on failure.
  static std::unique_ptr<MappedSegment> attach(int fd, int& error);
  ~MappedSegment();
  MappedSegment(const MappedSegment&) = delete;
  MappedSegment& operator=(const MappedSegment&) = delete;

  const Segment& segment() const { return segment_; }

  int fd() const { return fd_; }

 private:
  MappedSegment(int fd, Segment segment) : fd_(fd), segment_(segment) {}

  static std::unique_ptr<MappedSegment> format(int fd, const Geometry& geometry,
                                               const SegmentIdentity& identity, int& error);

  int fd_;
  Segment segment_;
};

// Returns 0 if every index, list and count in the image is within its bounds, else an errno. An
// image that passes can be used without any further check of its contents.
int validate_image(std::span<const std::byte> image);

// Makes `target` continue where `image` stopped. The target keeps its identity and addresses.
// Regions keep their addresses and must be rebound in a different process. Returns EINVAL if the
// image is not valid or has a different geometry.
int restore_image(const Segment& target, std::span<const std::byte> image);

// Gives the context of a process that was restored, and does not run yet, the identity and the
// addresses of `target`. The owner notices it as a resume. Returns EINVAL if `target` has another
// rank, other peers on this node or other kinds of links, and EMSGSIZE if its frames are shorter.
int move_context(const Segment& restored, const Segment& target);

// A SegmentSummary describes a running context as scored sees it.
struct SegmentSummary {
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  std::uint32_t generation = 0;
  std::uint32_t channel = 0;
  bool idle = false;   // rests or waits
  bool waits = false;  // sleeps until a message comes; see ContextState
  std::uint64_t total_bytes = 0;
  Counters counters;
};

// Reads the summary of a context whose owner may be hostile. It uses pread, so a truncated file is
// an error and not a SIGBUS. Returns EINVAL if the file is not a context; every value is checked
// before use.
int read_summary(int fd, SegmentSummary& summary);

// Reads the note about the message that the context waits for, under the same conditions as
// read_summary(). Returns EAGAIN while the owner writes it. Every field is within its bounds: a
// name of letters, digits and '_', a rank of the job.
int read_wait_note(int fd, WaitNote& note);

// Fills [rank] with the number of frames that the context has sent to each rank over its device,
// modulo 2^32 and without resent frames. It is 0 for ranks on the same node. The conditions are
// those of read_summary(); returns EINVAL, too, if the job of the context does not have
// frames.size() ranks. A hostile owner can only cause wrong numbers.
int read_frames_to(int fd, std::span<std::uint32_t> frames);

// StoppedTime describes the stops of the job: scored writes both values before it lets the process
// continue. Only the owner uses them; they belong to the node's copy of the context and are not
// saved.
struct StoppedTime {
  std::uint64_t microseconds = 0;  // in total so far
  std::uint32_t times = 0;
};

// The two values lie one after the other in a context as they do here, so one pwrite covers them.
inline constexpr std::size_t kStoppedTimeAt = offsetof(SegmentHeader, stopped_us);
inline constexpr std::size_t kStoppedTimeBytes = 12;
static_assert(offsetof(SegmentHeader, resumes) == kStoppedTimeAt + 8);

// A context shows how its owner waits in the fields from `state` to `polled_us`, for readers that
// have time for only one short pread. These readers check nothing: the owner may write any values
// there.
inline constexpr std::size_t kPollingAt = offsetof(SegmentHeader, state);
inline constexpr std::size_t kPolledTimeAt = offsetof(SegmentHeader, polled_us);
static_assert(kPolledTimeAt + sizeof(std::uint64_t) - kPollingAt <= 64, "one cache line");

// Reads the stopped time under the same conditions as read_summary().
int read_stopped_time(int fd, StoppedTime& stopped);

}  // namespace score::pm
