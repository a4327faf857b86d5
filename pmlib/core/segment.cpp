// This file implements layout, creation and validation of context segments.
//
// A segment can be copied because nothing in it is an address: lists are chained by 16-bit indices,
// and the geometry determines the parts. A segment of a hostile owner can be read safely because
// the reader copies first and checks the copy, so nothing can change between check and use.
#include "pmlib/core/segment.hpp"

#include "pmlib/core/vain_polls.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace score::pm {

namespace {

constexpr std::uint64_t kPage = 4096;  // the layout is the same on nodes with larger pages

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

template <class T>
constexpr bool is_within(T value, T low, T high) {
  return low <= value && value <= high;
}

bool is_sound(const Geometry& g) {
  constexpr std::uint32_t kMaxIndex = kNoIndex - 1;
  return is_within(g.size, 1u, kMaxRanks) && is_within(g.payload_bytes, kMinPayload, kMaxPayload) &&
         is_within(g.send_buffers, 2u, kMaxIndex) && is_within(g.receive_buffers, 2u, kMaxIndex) &&
         is_within(g.descriptors, 2u, kMaxIndex) && is_within(g.regions, 1u, kMaxIndex) &&
         is_within(g.operations, 1u, kMaxIndex) && is_within(g.inbox_entries, 8u, 65536u) &&
         std::has_single_bit(g.inbox_entries) && is_within(g.pool_buffers, 1u, kMaxIndex) &&
         is_within(g.pool_buffer_bytes, 256u, 1u << 20) && is_within(g.links, 1u, kMaxLinks);
}

// Chains entries 0 .. count-1 through `next`.
template <class Next>
void chain_all(std::uint32_t count, Next next) {
  for (std::uint32_t i = 0; i < count; ++i) {
    next(static_cast<std::uint16_t>(i)) =
        i + 1 < count ? static_cast<std::uint16_t>(i + 1) : kNoIndex;
  }
}

std::uint64_t random_number() {
  std::uint64_t value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value) value = 0x9e3779b97f4a7c15;
  return value | 1;
}

// Returns the layout that the geometry of a copied header gives, or nothing if the header is
// invalid.
std::optional<SegmentLayout> layout_of(const SegmentHeader& header, std::uint64_t available) {
  if (header.magic != kSegmentMagic || header.version != kSegmentVersion ||
      header.header_bytes != sizeof(SegmentHeader)) {
    return std::nullopt;
  }
  const auto layout = SegmentLayout::of(header.geometry);
  if (!layout || layout->total != header.total_bytes || layout->total > available) {
    return std::nullopt;
  }
  if (header.rank >= header.geometry.size || header.window == 0 || header.auth > FrameAuth::Tag) {
    return std::nullopt;
  }
  return layout;
}

// The header has atomics, so a copy of its bytes is read in aligned storage.
struct HeaderCopy {
  alignas(SegmentHeader) std::array<std::byte, sizeof(SegmentHeader)> bytes{};

  const SegmentHeader& operator*() const {
    return *std::launder(reinterpret_cast<const SegmentHeader*>(bytes.data()));
  }

  const SegmentHeader* operator->() const { return &**this; }
};

}  // namespace

std::optional<SegmentLayout> SegmentLayout::of(const Geometry& g) {
  if (!is_sound(g)) return std::nullopt;
  SegmentLayout l;
  l.buffer_bytes = static_cast<std::uint32_t>(round_up(sizeof(FrameHeader) + g.payload_bytes, 64));
  std::uint64_t end = round_up(sizeof(SegmentHeader), kPage);
  auto place = [&end](std::uint64_t bytes) {
    return std::exchange(end, round_up(end + bytes, 64));
  };
  l.peers = place(std::uint64_t{g.size} * sizeof(PeerState));
  l.sets = place(std::uint64_t{PeerSet::words_for(g.size)} * sizeof(std::uint64_t) *
                 static_cast<std::uint64_t>(PeerSetId::kCount));
  l.descriptors = place(std::uint64_t{g.descriptors} * sizeof(SendDescriptor));
  l.regions = place(std::uint64_t{g.regions} * sizeof(RegionEntry));
  l.operations = place(std::uint64_t{g.operations} * sizeof(Operation));
  l.received = place(std::uint64_t{g.receive_buffers} * sizeof(ReceivedBuffer));
  l.send_buffers = place(std::uint64_t{g.send_buffers} * l.buffer_bytes);
  l.receive_buffers = place(std::uint64_t{g.receive_buffers} * l.buffer_bytes);
  l.inbox = place(std::uint64_t{g.inbox_entries} * sizeof(InboxEntry));
  l.link_addresses = place(std::uint64_t{g.links - 1} * g.size * sizeof(PeerAddress));
  l.transfers = place(std::uint64_t{kNearTransfers} * sizeof(LocalTransfer));
  l.pool_free = place(std::uint64_t{g.pool_buffers} * sizeof(PoolFlag));
  l.pool = place(std::uint64_t{g.pool_buffers} * g.pool_buffer_bytes);
  l.total = round_up(end, kPage);
  return l;
}

PeerSet Segment::set(PeerSetId id) const {
  const std::uint32_t words = PeerSet::words_for(geometry_.size);
  auto* all = at<std::uint64_t>(layout_.sets);
  return PeerSet({all + static_cast<std::uint32_t>(id) * words, words}, geometry_.size);
}

Segment format_segment(std::byte* memory, const Geometry& geometry, const SegmentLayout& layout,
                       const SegmentIdentity& identity) {
  auto* header = new (memory) SegmentHeader();
  header->header_bytes = sizeof(SegmentHeader);
  header->total_bytes = layout.total;
  header->geometry = geometry;
  header->key = identity.key;
  header->generation = identity.generation;
  header->rank = identity.rank;
  header->channel = identity.channel;
  header->window = identity.window;
  header->auth = identity.auth;
  header->peer_timeout_s = identity.peer_timeout_s;
  header->device = identity.device;
  header->more_links = identity.more_links;
  header->link_weights = identity.link_weights;
  header->free_descriptors = static_cast<std::uint16_t>(geometry.descriptors);
  header->room.capacity = static_cast<std::uint16_t>(geometry.receive_buffers);
  header->nonce_state = identity.nonce_seed != 0 ? identity.nonce_seed : random_number();

  const Segment s(memory, geometry, layout);
  const Engine<> engine(EngineLimits{.window = identity.window});
  for (std::uint32_t i = 0; i < geometry.size; ++i) {
    (new (&s.peer(i)) PeerState())->send = engine.fresh_sender();
  }
  for (std::uint32_t i = 0; i < geometry.descriptors; ++i) {
    new (&s.descriptor(static_cast<std::uint16_t>(i))) SendDescriptor();
  }
  for (std::uint32_t i = 0; i < geometry.regions; ++i) new (&s.region(i)) RegionEntry();
  for (std::uint32_t i = 0; i < geometry.operations; ++i) new (&s.operation(i)) Operation();
  for (std::uint32_t i = 0; i < kNearTransfers; ++i) new (&s.transfer(i)) LocalTransfer();
  for (std::uint32_t i = 0; i < geometry.receive_buffers; ++i) {
    new (&s.received(static_cast<std::uint16_t>(i))) ReceivedBuffer();
  }
  for (std::uint32_t i = 0; i < geometry.inbox_entries; ++i) {
    (new (&s.inbox(i)) InboxEntry())->turn.store(i, std::memory_order_relaxed);
  }
  chain_all(geometry.descriptors,
            [&](std::uint16_t i) -> std::uint16_t& { return s.descriptor(i).next; });
  chain_all(geometry.receive_buffers,
            [&](std::uint16_t i) -> std::uint16_t& { return s.received(i).next; });
  // A free send buffer holds the index of the next free one.
  chain_all(geometry.send_buffers, [&](std::uint16_t i) -> std::uint16_t& {
    return *reinterpret_cast<std::uint16_t*>(s.send_buffer(i));
  });
  return s;
}

// --- files -------------------------------------------------------------------------------------

std::unique_ptr<MappedSegment> MappedSegment::format(int fd, const Geometry& geometry,
                                                     const SegmentIdentity& identity, int& error) {
  const auto layout = SegmentLayout::of(geometry);
  void* memory = MAP_FAILED;
  error = EINVAL;
  if (layout && ftruncate(fd, static_cast<off_t>(layout->total)) == 0) {
    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    memory = mmap(nullptr, layout->total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    error = errno;
  }
  if (memory == MAP_FAILED) {
    close(fd);
    return nullptr;
  }
  error = 0;
  const Segment segment =
      format_segment(static_cast<std::byte*>(memory), geometry, *layout, identity);
  return std::unique_ptr<MappedSegment>(new MappedSegment(fd, segment));
}

std::unique_ptr<MappedSegment> MappedSegment::create(const Geometry& geometry,
                                                     const SegmentIdentity& identity, int& error) {
  const int fd = memfd_create("pm-context", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) {
    error = errno;
    return nullptr;
  }
  return format(fd, geometry, identity, error);
}

std::unique_ptr<MappedSegment> MappedSegment::create_at(const std::string& path,
                                                        const Geometry& geometry,
                                                        const SegmentIdentity& identity,
                                                        int& error) {
  // The file is formatted under a different name first, so that a process that opens `path` finds
  // it complete.
  const std::string draft = path + ".new";
  unlink(draft.c_str());
  const int fd = open(draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    error = errno;
    return nullptr;
  }
  auto segment = format(fd, geometry, identity, error);
  if (segment && rename(draft.c_str(), path.c_str()) != 0) {
    error = errno;
    segment.reset();
  }
  if (!segment) unlink(draft.c_str());
  return segment;
}

std::unique_ptr<MappedSegment> MappedSegment::attach(int fd, int& error) {
  struct stat status {};

  HeaderCopy header;
  std::optional<SegmentLayout> layout;
  error = EINVAL;
  if (fstat(fd, &status) != 0) {
    error = errno;
  } else if (status.st_uid != geteuid()) {
    error = EACCES;  // only contexts of one user touch each other's memory
  } else if (pread(fd, header.bytes.data(), header.bytes.size(), 0) ==
             static_cast<ssize_t>(header.bytes.size())) {
    layout = layout_of(*header, static_cast<std::uint64_t>(status.st_size));
  }
  void* memory = MAP_FAILED;
  if (layout) {
    memory = mmap(nullptr, layout->total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    error = errno;
  }
  if (memory == MAP_FAILED) {
    if (fd >= 0) close(fd);
    return nullptr;
  }
  error = 0;
  return std::unique_ptr<MappedSegment>(
      new MappedSegment(fd, Segment(static_cast<std::byte*>(memory), header->geometry, *layout)));
}

MappedSegment::~MappedSegment() {
  munmap(segment_.bytes().data(), segment_.bytes().size());
  close(fd_);
}

// --- images ------------------------------------------------------------------------------------

namespace {

// Follows every list of an image once. An entry found twice, or an index out of bounds, is an
// error.
class ImageCheck {
 public:
  ImageCheck(const Segment& s)
      : s_(s),
        descriptors_(s.geometry().descriptors),
        send_buffers_(s.geometry().send_buffers),
        received_(s.geometry().receive_buffers) {}

  bool is_sound() {
    const SegmentHeader& h = s_.header();
    std::uint32_t free_count = 0;
    if (!walk_descriptors(h.free_descriptor, free_count) || free_count != h.free_descriptors) {
      return false;
    }
    for (std::uint32_t i = 0; i < s_.geometry().size; ++i) {
      if (!check_peer(s_.peer(i))) return false;
    }
    return walk_free_buffers(h.free_send_buffer) && walk_received(h.free_receive_buffer, nullptr) &&
           walk_received(h.delivered.head, &h.delivered.tail) &&
           walk_received(h.requests.head, &h.requests.tail) && check_room() && check_tables() &&
           check_transfers();
  }

 private:
  // Each entry belongs to exactly one list.
  static bool claim(std::vector<bool>& taken, std::uint16_t index) {
    if (index >= taken.size() || taken[index]) return false;
    return taken[index] = true;
  }

  bool walk_descriptors(std::uint16_t at, std::uint32_t& count) {
    for (; at != kNoIndex; at = s_.descriptor(at).next, ++count) {
      if (!claim(descriptors_, at)) return false;
    }
    return true;
  }

  bool check_peer(const PeerState& peer) {
    const auto& side = peer.send;
    const std::uint32_t waiting = side.queued - side.acked;
    const std::uint32_t sent = side.sent - side.acked;
    const std::uint32_t highest = side.max_sent - side.acked;
    if (sent > highest || highest > waiting || highest > s_.header().window) return false;
    if ((peer.head == kNoIndex) != (peer.tail == kNoIndex)) return false;
    if (peer.route > Route::Self) return false;
    return check_queue(peer, waiting);
  }

  // Returns true if the descriptors of a peer cover its numbers without a gap, up to `queued`.
  bool check_queue(const PeerState& peer, std::uint32_t waiting) {
    std::uint32_t covered = 0;
    std::uint16_t last = kNoIndex;
    for (std::uint16_t at = peer.head; at != kNoIndex; at = s_.descriptor(at).next) {
      if (!claim(descriptors_, at)) return false;
      const SendDescriptor& d = s_.descriptor(at);
      const std::uint32_t end = d.first + d.frames - 1 - peer.send.acked;
      if (d.frames == 0 || end <= covered || end > waiting) return false;
      if (last != kNoIndex && d.first - peer.send.acked != covered + 1) return false;
      if (!check_descriptor(d)) return false;
      covered = end;
      last = at;
    }
    return covered == waiting && last == peer.tail;
  }

  bool check_descriptor(const SendDescriptor& d) {
    const Geometry& g = s_.geometry();
    if (!is_sequenced(d.kind)) return false;
    if (d.op != kNoIndex && d.op >= g.operations) return false;
    if (d.kind == FrameKind::OpDone) {
      return d.frames == 1 && d.buffer == kNoIndex && d.length == 0 && d.local_region < g.regions;
    }
    if (const std::uint32_t each = d.bytes_per_frame(g.payload_bytes); each != 0) {
      if (d.local_region >= g.regions) return false;
      const RegionEntry& r = s_.region(d.local_region);
      if (d.local_offset > r.length || d.length > r.length - d.local_offset) return false;
      const std::uint32_t needed = d.length / each + (d.length % each != 0 ? 1 : 0);
      if (d.frames != std::max(1u, needed)) return false;
    } else if (d.frames != 1 && d.kind != FrameKind::Void) {
      return false;
    }
    if (d.buffer == kNoIndex) {
      return d.kind == FrameKind::Write || d.kind == FrameKind::Void || d.is_in_parts();
    }
    if (!claim(send_buffers_, d.buffer)) return false;
    return d.length <= g.payload_bytes;
  }

  bool walk_free_buffers(std::uint16_t at) {
    while (at != kNoIndex) {
      if (!claim(send_buffers_, at)) return false;
      std::memcpy(&at, s_.send_buffer(at), sizeof at);
    }
    return true;
  }

  bool walk_received(std::uint16_t at, const std::uint16_t* tail) {
    std::uint16_t last = kNoIndex;
    for (; at != kNoIndex; at = s_.received(at).next) {
      if (!claim(received_, at)) return false;
      const ReceivedBuffer& buffer = s_.received(at);
      if (tail != nullptr &&
          (buffer.source >= s_.geometry().size || buffer.length > s_.geometry().payload_bytes)) {
        return false;
      }
      if (tail == nullptr) ++free_received_;
      last = at;
    }
    return tail == nullptr || last == *tail;
  }

  bool check_room() {
    const SharedRoom& room = s_.header().room;
    std::uint32_t promised = 0;
    for (std::uint32_t i = 0; i < s_.geometry().size; ++i) {
      promised += s_.peer(i).receive.has(ReceiveSide<std::uint32_t>::kPromised) ? 1 : 0;
    }
    return room.capacity == s_.geometry().receive_buffers && room.promised == promised &&
           room.used + free_received_ == room.capacity && promised <= free_received_;
  }

  bool check_tables() {
    const Geometry& g = s_.geometry();
    for (std::uint32_t i = 0; i < g.regions; ++i) {
      if (s_.region(i).address + s_.region(i).length < s_.region(i).address) return false;
    }
    for (std::uint32_t i = 0; i < g.operations; ++i) {
      const Operation& op = s_.operation(i);
      if (op.state > static_cast<std::uint8_t>(OperationState::Done) || op.peer >= g.size) {
        return false;
      }
    }
    for (std::uint32_t id = 0; id < static_cast<std::uint32_t>(PeerSetId::kCount); ++id) {
      const PeerSet set = s_.set(static_cast<PeerSetId>(id));
      const std::uint32_t padded = PeerSet::words_for(g.size) * 64;
      for (std::uint32_t bit = g.size; bit < padded; ++bit) {
        if (set.contains(bit)) return false;
      }
    }
    return true;
  }

  bool check_transfers() const {
    for (std::uint32_t i = 0; i < kNearTransfers; ++i) {
      const LocalTransfer& t = s_.transfer(i);
      if (t.running == 0) continue;
      if (t.peer >= s_.geometry().size || t.given > t.length ||
          t.pieces > s_.geometry().pool_buffers || t.local_region >= s_.geometry().regions) {
        return false;
      }
      const RegionEntry& r = s_.region(t.local_region);
      if (t.local_offset > r.length || t.length > r.length - t.local_offset) return false;
    }
    return true;
  }

  const Segment& s_;
  std::vector<bool> descriptors_, send_buffers_, received_;
  std::uint32_t free_received_ = 0;
};

}  // namespace

int validate_image(std::span<const std::byte> image) {
  HeaderCopy header;
  if (image.size() < header.bytes.size()) return EINVAL;
  std::memcpy(header.bytes.data(), image.data(), header.bytes.size());
  const auto layout = layout_of(*header, image.size());
  if (!layout || reinterpret_cast<std::uintptr_t>(image.data()) % 64 != 0) return EINVAL;
  // The checks only read; there is no read-only Segment because all other users write.
  const Segment s(const_cast<std::byte*>(image.data()), header->geometry, *layout);
  return ImageCheck(s).is_sound() ? 0 : EINVAL;
}

int restore_image(const Segment& target, std::span<const std::byte> image) {
  if (const int error = validate_image(image); error != 0) return error;
  HeaderCopy saved;
  std::memcpy(saved.bytes.data(), image.data(), saved.bytes.size());
  SegmentHeader& h = target.header();
  if (!(saved->geometry == target.geometry()) || saved->rank != h.rank) return EINVAL;

  HeaderCopy mine;  // this belongs to the target and is not part of the context
  std::memcpy(mine.bytes.data(), &h, mine.bytes.size());
  const std::uint32_t links = target.geometry().links;
  std::vector<PeerAddress> addresses(std::size_t{target.geometry().size} * links);
  std::vector<Route> routes(target.geometry().size);
  for (std::uint32_t i = 0; i < target.geometry().size; ++i) {
    for (std::uint32_t k = 0; k < links; ++k) {
      addresses[i * links + k] = target.link_address(k, i);
    }
    routes[i] = target.peer(i).route;
  }
  std::memcpy(target.bytes().data(), image.data(), target.bytes().size());
  for (std::uint32_t i = 0; i < target.geometry().size; ++i) {
    for (std::uint32_t k = 0; k < links; ++k) {
      target.link_address(k, i) = addresses[i * links + k];
    }
    target.peer(i).route = routes[i];
  }
  h.key = mine->key;
  h.generation = mine->generation;
  h.channel = mine->channel;
  h.auth = mine->auth;
  h.peer_timeout_s = mine->peer_timeout_s;
  h.device = mine->device;
  h.more_links = mine->more_links;
  h.link_weights = mine->link_weights;
  h.wake_name = mine->wake_name;
  h.stopped_us.store(mine->stopped_us.load(std::memory_order_relaxed), std::memory_order_relaxed);
  h.resumes.store(mine->resumes.load(std::memory_order_relaxed), std::memory_order_relaxed);
  h.owner_pid.store(mine->owner_pid.load(std::memory_order_relaxed), std::memory_order_relaxed);
  h.sleeping.store(0, std::memory_order_relaxed);
  h.state.store(ContextState::Works, std::memory_order_relaxed);
  h.rested_us.store(0, std::memory_order_relaxed);
  h.polled_us.store(mine->polled_us.load(std::memory_order_relaxed), std::memory_order_relaxed);
  target.write_wait_note({});
  return 0;
}

void Segment::write_wait_note(const WaitNote& note) const {
  WaitNotice& w = header().wait;
  const std::uint64_t version = w.version.load(std::memory_order_relaxed) | 1;
  w.version.store(version, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  w.note = note;
  w.version.store(version + 1, std::memory_order_release);
}

namespace {

// Returns 0 if the header fits the file's size.
int read_header(int fd, HeaderCopy& header, SegmentLayout& layout) {
  struct stat status {};

  if (fstat(fd, &status) != 0) return errno;
  if (pread(fd, header.bytes.data(), header.bytes.size(), 0) !=
      static_cast<ssize_t>(header.bytes.size())) {
    return EINVAL;
  }
  const auto found = layout_of(*header, static_cast<std::uint64_t>(status.st_size));
  if (!found) return EINVAL;
  layout = *found;
  return 0;
}

// Returns true if the rank sleeps until a message arrives, is awake only for a short check, or
// polls in vain.
bool is_waiting(const SegmentHeader& h) {
  if (h.state.load(std::memory_order_relaxed) != ContextState::Waits) return false;
  const std::uint64_t rested_us = h.rested_us.load(std::memory_order_relaxed);
  if (h.sleeping.load(std::memory_order_relaxed) == 1 || rested_us == kPollsInVain) return true;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const auto now_us = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 +
                      static_cast<std::uint64_t>(now.tv_nsec) / 1000;
  return now_us - rested_us < kRestGraceUs;
}

constexpr bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

void bound(WaitNote& note, std::uint32_t ranks) {
  note.call.back() = '\0';
  const auto end = std::find_if_not(note.call.begin(), note.call.end(), is_word);
  std::fill(end, note.call.end(), '\0');
  if (note.source < 0 || note.source >= ranks) note.source = WaitNote::kAny;
  if (note.tag < 0 || note.tag > INT32_MAX) note.tag = WaitNote::kAny;
}

}  // namespace

int read_wait_note(int fd, WaitNote& note) {
  HeaderCopy header, again;
  SegmentLayout layout;
  if (const int error = read_header(fd, header, layout); error != 0) return error;
  // The order in which a copy is made is unknown, so two equal copies, one after the other, show
  // that the owner did not write between them.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (const int error = read_header(fd, again, layout); error != 0) return error;
  const std::uint64_t version = header->wait.version.load(std::memory_order_relaxed);
  const bool is_same = again->wait.version.load(std::memory_order_relaxed) == version &&
                       again->wait.note == header->wait.note;
  if (version % 2 != 0 || !is_same) return EAGAIN;
  note = header->wait.note;
  bound(note, header->geometry.size);
  return 0;
}

int read_summary(int fd, SegmentSummary& summary) {
  HeaderCopy header;
  SegmentLayout layout;
  if (const int error = read_header(fd, header, layout); error != 0) return error;
  summary.rank = header->rank;
  summary.size = header->geometry.size;
  summary.generation = header->generation;
  summary.channel = header->channel;
  summary.waits = is_waiting(*header);
  summary.idle =
      summary.waits || header->state.load(std::memory_order_relaxed) == ContextState::Rests;
  summary.total_bytes = layout.total;
  summary.counters = header->counters;
  return 0;
}

int read_frames_to(int fd, std::span<std::uint32_t> frames) {
  HeaderCopy header;
  SegmentLayout layout;
  if (const int error = read_header(fd, header, layout); error != 0) return error;
  if (header->geometry.size != frames.size()) return EINVAL;
  constexpr std::size_t kAtOnce = 64;
  std::array<PeerState, kAtOnce> peers;
  for (std::size_t first = 0; first < frames.size(); first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, frames.size() - first);
    const auto bytes = static_cast<ssize_t>(count * sizeof(PeerState));
    const auto at = static_cast<off_t>(layout.peers + first * sizeof(PeerState));
    if (pread(fd, peers.data(), count * sizeof(PeerState), at) != bytes) return EINVAL;
    for (std::size_t i = 0; i < count; ++i) frames[first + i] = peers[i].send.max_sent;
  }
  return 0;
}

int read_stopped_time(int fd, StoppedTime& stopped) {
  HeaderCopy header;
  SegmentLayout layout;
  if (const int error = read_header(fd, header, layout); error != 0) return error;
  stopped.microseconds = header->stopped_us.load(std::memory_order_relaxed);
  stopped.times = header->resumes.load(std::memory_order_relaxed);
  return 0;
}

}  // namespace score::pm
