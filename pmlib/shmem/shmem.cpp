// The inbox is a bounded queue of cache lines with many writers and one reader, ordered by a turn
// number in each entry (Vyukov's bounded queue). A writer may fill an entry in lap L when its turn
// number allows it, and the reader may read it when the writer has advanced that number. A small
// message and its turn number share the line, so the whole cost is one transfer of it between
// caches. A longer message is built in a buffer of the sender's own segment and read there by the
// receiver; only its place goes through the inbox. So buffers belong to the sender, and a slow
// sender delays no other.
#include "pmlib/shmem/shmem.hpp"

#include "pmlib/shmem/shmem_entries.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace score::pm {

namespace {

constexpr std::size_t kInlineBytes = sizeof(InboxEntry::bytes);
constexpr std::uint32_t kPeerShift = 3;

// Returns the value of pool_used() for a message to `peer`.
std::uint32_t message_in_buffer(std::uint32_t peer) {
  return static_cast<std::uint32_t>(BufferState::Message) | peer << kPeerShift;
}

// Returns true if any rank of this node uses Shmem, including this one.
bool has_near_peer(const Segment& segment) {
  for (std::uint32_t i = 0; i < segment.geometry().size; ++i) {
    const Route route = segment.peer(i).route;
    if (route == Route::Shmem || route == Route::Self) return true;
  }
  return false;
}

// Reads /proc/PID/stat, proc(5): "pid (name) state ...", where the name may contain anything.
bool is_dead(std::uint32_t pid) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(), "/proc/%u/stat", pid);
  const int file = open(text.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno == ENOENT;
  const ssize_t length = read(file, text.data(), text.size());
  close(file);
  if (length <= 0) return length < 0 && errno == ESRCH;
  const std::string_view stat(text.data(), static_cast<std::size_t>(length));
  const auto behind = stat.rfind(") ");
  return behind != stat.npos && behind + 2 < stat.size() && stat[behind + 2] == 'Z';
}

// A container may refuse pidfds.
bool has_exited(int pidfd, std::uint32_t pid) {
  if (pidfd < 0) return is_dead(pid);
  pollfd ended{pidfd, POLLIN, 0};
  return poll(&ended, 1, 0) > 0;
}

}  // namespace

Shmem::Shmem(const Segment& segment, OpenPeer open_peer, int wake_socket, bool may_cross)
    : segment_(segment),
      open_peer_(std::move(open_peer)),
      wake_socket_(wake_socket),
      operations_(segment),
      head_(segment.header().inbox_head),
      may_cross_(may_cross),
      peers_(has_near_peer(segment) ? segment.geometry().size : 0),
      offers_(segment.geometry().pool_buffers),
      offered_(std::bit_ceil(segment.geometry().pool_buffers)),
      seen_(head_) {
  for (std::uint32_t i = 0; i < kNearTransfers; ++i) {
    if (segment_.transfer(i).running != 0) {
      running_ |= std::uint64_t{1} << i;
      running_bytes_ += segment_.transfer(i).length;
    }
    pieces_ += segment_.transfer(i).pieces;
  }
}

Shmem::~Shmem() {
  for (const Peer& peer : peers_) {
    if (peer.pidfd >= 0) close(peer.pidfd);
  }
}

// --- peers -------------------------------------------------------------------------------------

const Segment* Shmem::peer_segment(std::uint32_t peer) const {
  if (peer == segment_.header().rank) return &segment_;
  if (peer >= peers_.size()) return nullptr;
  return peers_[peer].mapping ? &peers_[peer].mapping->segment() : nullptr;
}

// Returns 0, or ENOBUFS while the peer is not there yet.
int Shmem::attach(std::uint32_t rank) {
  if (rank >= peers_.size()) return EINVAL;
  if (segment_.peer(rank).dead != 0) return EHOSTDOWN;
  if (peer_segment(rank) != nullptr) return 0;
  const int fd = open_peer_(rank);
  if (fd < 0) return ENOBUFS;
  int error = 0;
  auto mapping = MappedSegment::attach(fd, error);
  if (!mapping) return error == EACCES ? EACCES : ENOBUFS;
  const SegmentHeader& mine = segment_.header();
  const SegmentHeader& theirs = mapping->segment().header();
  const std::uint32_t pid = theirs.owner_pid.load(std::memory_order_acquire);
  if (theirs.key != mine.key || theirs.generation != mine.generation || theirs.rank != rank ||
      pid == 0) {
    return ENOBUFS;  // left over from an earlier run, or not ready
  }
  Peer& peer = peers_[rank];
  peer.pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  peer.can_cross = may_cross_ && is_crossing_allowed(static_cast<pid_t>(pid));
  peer.mapping = std::move(mapping);
  if (peer.pidfd >= 0) new_death_fds_.push_back(peer.pidfd);
  if (peer.pidfd < 0) ++unwatched_;
  ++attached_;
  return 0;
}

bool Shmem::find_dead(std::uint32_t& rank) {
  for (std::uint32_t i = 0; attached_ > 0 && i < peers_.size(); ++i) {
    Peer& peer = peers_[i];
    if (!peer.mapping || peer.is_gone) continue;
    const SegmentHeader& theirs = peer.mapping->segment().header();
    const bool has_ended = has_exited(peer.pidfd, theirs.owner_pid.load());
    const bool has_left = theirs.closed.load() != 0;
    if (!has_ended && !has_left) continue;
    forget_peer(i);
    if (has_left) continue;
    rank = i;
    return true;
  }
  return false;
}

// Frees all state of a dead peer, which neither answers nor releases our buffers.
void Shmem::forget_peer(std::uint32_t rank) {
  take_entries();  // messages sent before the death still count
  Peer& peer = peers_[rank];
  peer.is_gone = true;
  --attached_;
  if (peer.pidfd < 0) --unwatched_;
  std::erase(new_death_fds_, peer.pidfd);
  if (peer.pidfd >= 0) close(std::exchange(peer.pidfd, -1));
  operations_.fail_peer(rank, EHOSTDOWN);
  forget_transfers(rank);
  free_message_buffers(rank);
}

std::vector<int> Shmem::take_new_death_fds() {
  return std::exchange(new_death_fds_, {});
}

void Shmem::wake(const SegmentHeader& peer) const {
  if (peer.sleeping.load(std::memory_order_seq_cst) == 0) return;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, peer.wake_name.data(), peer.wake_name.size());
  const auto length = static_cast<socklen_t>(
      offsetof(sockaddr_un, sun_path) + 1 + strnlen(&peer.wake_name[1], peer.wake_name.size() - 1));
  // A full queue means that the peer is being woken already.
  [[maybe_unused]] const ssize_t sent =
      sendto(wake_socket_, "", 1, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&name), length);
  ++segment_.header().counters.wakeups;
}

// --- sending -----------------------------------------------------------------------------------

int Shmem::push(std::uint32_t rank, std::uint16_t kind, std::uint32_t length, std::uint16_t buffer,
                std::span<const std::byte> bytes) {
  const Segment& to = *peer_segment(rank);
  SegmentHeader& h = to.header();
  if (h.closed.load(std::memory_order_relaxed) != 0) return EHOSTDOWN;
  const std::uint32_t mask = to.geometry().inbox_entries - 1;
  std::uint32_t ticket = h.inbox_tail.load(std::memory_order_relaxed);
  InboxEntry* entry = nullptr;
  for (;;) {
    entry = &to.inbox(ticket & mask);
    const auto lag =
        static_cast<std::int32_t>(entry->turn.load(std::memory_order_acquire) - ticket);
    if (lag < 0) return ENOBUFS;  // read, but not released yet
    if (lag > 0) {
      ticket = h.inbox_tail.load(std::memory_order_relaxed);
    } else if (h.inbox_tail.compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed)) {
      break;
    }
  }
  entry->source = segment_.header().rank;
  entry->length = length;
  entry->kind = kind;
  entry->buffer = buffer;
  if (!bytes.empty()) std::memcpy(entry->bytes.data(), bytes.data(), bytes.size());
  // A full barrier is needed, because the reader's `sleeping` must be read after the entry has
  // become visible.
  if (kind == kWrite && can_cross(rank)) {
    // The wake-up may fail, because the writer takes back an offer that stays untouched. So it does
    // not wait here for its stores.
    entry->turn.store(ticket + 1, std::memory_order_release);
  } else {
    entry->turn.exchange(ticket + 1, std::memory_order_seq_cst);
  }
  wake(h);
  return 0;
}

// Returns a free buffer, marked with `value`; kNoIndex if there is none.
std::uint16_t Shmem::take_pool_buffer(std::uint32_t value) {
  const std::uint32_t buffers = segment_.geometry().pool_buffers;
  for (std::uint32_t i = 0; i < buffers; ++i) {
    const std::uint32_t buffer = pool_turn_;
    pool_turn_ = buffer + 1 < buffers ? buffer + 1 : 0;
    if (segment_.pool_used(buffer).load(std::memory_order_acquire) != 0) continue;
    segment_.pool_used(buffer).store(value, std::memory_order_relaxed);
    return static_cast<std::uint16_t>(buffer);
  }
  return kNoIndex;
}

int Shmem::get_send_buffer(std::uint32_t peer, std::uint32_t length, std::byte** buffer) {
  if (building_) return EBUSY;
  if (length > message_bytes()) return EMSGSIZE;
  if (const int error = attach(peer); error != 0) return error;
  building_buffer_ = kNoIndex;
  if (length > kInlineBytes) {
    building_buffer_ = take_pool_buffer(message_in_buffer(peer));
    if (building_buffer_ == kNoIndex) return ENOBUFS;
  }
  building_ = true;
  building_for_ = peer;
  building_length_ = length;
  *buffer =
      building_buffer_ == kNoIndex ? inline_bytes_.data() : segment_.pool_buffer(building_buffer_);
  return 0;
}

int Shmem::send() {
  if (!building_) return EINVAL;
  const bool is_inline = building_buffer_ == kNoIndex;
  const std::span<const std::byte> bytes(inline_bytes_.data(), is_inline ? building_length_ : 0);
  const int error = peers_[building_for_].is_gone
                        ? EHOSTDOWN
                        : push(building_for_, is_inline ? kInline : kPooled, building_length_,
                               building_buffer_, bytes);
  if (error == ENOBUFS) return error;  // still lent: the caller may try again
  if (error != 0) {
    cancel_send();
    return error;
  }
  building_ = false;
  Counters& c = segment_.header().counters;
  ++c.messages_sent;
  c.bytes_sent += building_length_;
  return 0;
}

void Shmem::cancel_send() {
  if (building_ && building_buffer_ != kNoIndex) {
    segment_.pool_used(building_buffer_).store(0, std::memory_order_relaxed);
  }
  building_ = false;
}

int Shmem::send_datagram(std::uint32_t peer, std::span<const std::byte> bytes) {
  if (bytes.size() > message_bytes()) return EMSGSIZE;
  int error = attach(peer);
  if (error == 0 && peers_[peer].is_gone) error = EHOSTDOWN;
  if (error != 0) return error == ENOBUFS ? EAGAIN : error;
  const auto length = static_cast<std::uint32_t>(bytes.size());
  std::uint16_t buffer = kNoIndex;
  if (bytes.size() > kInlineBytes) {
    buffer = take_pool_buffer(message_in_buffer(peer));
    if (buffer == kNoIndex) return EAGAIN;
    std::memcpy(segment_.pool_buffer(buffer), bytes.data(), bytes.size());
  }
  error = buffer == kNoIndex ? push(peer, kInlineDatagram, length, buffer, bytes)
                             : push(peer, kPooledDatagram, length, buffer, {});
  if (error == 0) {
    ++segment_.header().counters.datagrams_sent;
  } else if (buffer != kNoIndex) {
    segment_.pool_used(buffer).store(0, std::memory_order_relaxed);
  }
  return error == ENOBUFS ? EAGAIN : error;
}

void Shmem::free_message_buffers(std::uint32_t peer) {
  for (std::uint32_t buffer = 0; buffer < segment_.geometry().pool_buffers; ++buffer) {
    const bool is_lent = building_ && buffer == building_buffer_;
    std::atomic<std::uint32_t>& used = segment_.pool_used(buffer);
    if (is_lent || used.load(std::memory_order_relaxed) != message_in_buffer(peer)) continue;
    used.store(0, std::memory_order_relaxed);
  }
}

// --- receiving ---------------------------------------------------------------------------------

bool Shmem::receive(ReceivedMessage& message) {
  const std::uint32_t mask = segment_.geometry().inbox_entries - 1;
  while (has_input()) {
    InboxEntry& entry = segment_.inbox(head_ & mask);
    // The entry comes from a different process, so it is copied before it is checked.
    const std::uint32_t source = entry.source;
    const std::uint32_t length = entry.length;
    const std::uint16_t kind = entry.kind;
    const std::uint16_t buffer = entry.buffer;
    if (is_internal(kind)) {
      if (kind != kTaken && !take_entry(entry, kind)) return false;
      release(head_++);
      continue;
    }
    // Messages of dead peers are received as well.
    bool is_sound = source < segment_.geometry().size && length <= kInlineBytes;
    if (is_pooled(kind) && source < segment_.geometry().size) {
      const bool is_there = peer_segment(source) != nullptr || attach(source) == 0;
      const Geometry& theirs = is_there ? peer_segment(source)->geometry() : segment_.geometry();
      is_sound = is_there && length <= theirs.pool_buffer_bytes && buffer < theirs.pool_buffers;
    }
    ++head_;
    if (!is_sound || (kind > kLarge && !is_datagram(kind))) {
      ++segment_.header().counters.dropped_malformed;
      release(head_ - 1);
      continue;
    }
    const std::byte* bytes =
        is_pooled(kind) ? peer_segment(source)->pool_buffer(buffer) : entry.bytes.data();
    message = {source,
               kind == kLarge ? FrameKind::Large : FrameKind::Message,
               {bytes, length},
               head_ - 1,
               true};
    Counters& c = segment_.header().counters;
    if (is_datagram(kind)) [[unlikely]] {
      message.kind = FrameKind::Datagram;
      ++c.datagrams_received;
      return true;
    }
    ++c.messages_received;
    c.bytes_received += length;
    return true;
  }
  return false;
}

void Shmem::release(std::uint32_t ticket) {
  const std::uint32_t entries = segment_.geometry().inbox_entries;
  InboxEntry& entry = segment_.inbox(ticket & (entries - 1));
  if (entry.turn.load(std::memory_order_relaxed) != ticket + 1) return;  // released before
  const std::uint32_t source = entry.source;
  const std::uint16_t buffer = entry.buffer;
  if (is_pooled(entry.kind) && source < peers_.size()) {
    const Segment* from = peer_segment(source);
    if (from != nullptr && buffer < from->geometry().pool_buffers) {
      from->pool_used(buffer).store(0, std::memory_order_release);
    }
  }
  entry.turn.store(ticket + entries, std::memory_order_release);
}

bool Shmem::is_quiet() const {
  if (has_input() || building_ || running_ != 0) return false;
  for (std::uint32_t i = 0; i < segment_.geometry().pool_buffers; ++i) {
    if (segment_.pool_used(i).load(std::memory_order_relaxed) != 0) return false;
  }
  return true;
}

// --- large messages ----------------------------------------------------------------------------

int Shmem::announce(std::uint32_t peer, std::uint32_t local, std::uint64_t offset,
                    std::uint64_t length, OperationId& op) {
  if (const int error = attach(peer); error != 0) return error;
  if (local >= segment_.geometry().regions ||
      !region_covers(segment_, local, segment_.region(local).nonce, offset, length)) {
    return EINVAL;
  }
  op = operations_.start(peer);
  if (op == 0) return ENOBUFS;
  const LargeHeader large{local, segment_.region(local).nonce, offset, length, op, 0};
  const int error = push(peer, kLarge, sizeof large, kNoIndex, std::as_bytes(std::span(&large, 1)));
  if (error == 0) {
    ++segment_.header().counters.messages_sent;
    segment_.header().counters.bytes_sent += length;
    return 0;
  }
  operations_.finish(static_cast<std::uint16_t>(op & 0xffff), error);
  operations_.test(op);
  op = 0;
  return error;
}

int Shmem::end_remote(std::uint32_t peer, std::uint32_t remote_op, int error) {
  if (const int missing = attach(peer); missing != 0) return missing;
  const std::array<std::uint32_t, 2> note{remote_op, static_cast<std::uint32_t>(error)};
  return push(peer, kOpDone, sizeof note, kNoIndex, std::as_bytes(std::span(note)));
}

}  // namespace score::pm
