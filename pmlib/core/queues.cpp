#include "pmlib/core/queues.hpp"

#include "pmlib/core/segment.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace score::pm {
namespace {

// A Reader copies parts of a segment.
class Reader {
 public:
  static std::optional<Reader> open(int fd) {
    Reader reader(fd);

    struct stat status {};

    if (fstat(fd, &status) != 0 || !reader.copy(0, reader.header_)) return std::nullopt;
    const SegmentHeader& h = reader.header();
    if (h.magic != kSegmentMagic || h.version != kSegmentVersion) return std::nullopt;
    const auto layout = SegmentLayout::of(h.geometry);
    if (!layout || layout->total > static_cast<std::uint64_t>(status.st_size)) return std::nullopt;
    reader.layout_ = *layout;
    return reader;
  }

  const SegmentHeader& header() const {
    return *reinterpret_cast<const SegmentHeader*>(header_.data());
  }

  const SegmentLayout& layout() const { return layout_; }

  template <class Value>
  bool copy(std::uint64_t at, Value& value) const {
    return pread(fd_, &value, sizeof value, static_cast<off_t>(at)) == ssize_t{sizeof value};
  }

 private:
  explicit Reader(int fd) : fd_(fd) {}

  int fd_;
  alignas(SegmentHeader) std::array<std::byte, sizeof(SegmentHeader)> header_{};
  SegmentLayout layout_;
};

void list(std::set<std::uint32_t>& ranks, std::uint32_t rank, std::uint32_t size) {
  if (rank < size && ranks.size() < QueueSummary::kMaxRanksListed) ranks.insert(rank);
}

// Messages that were received, and those in the shared memory that peers of this node fill.
int read_received(const Reader& reader, std::uint32_t& count, std::set<std::uint32_t>& senders) {
  const SegmentHeader& h = reader.header();
  std::uint16_t next = h.delivered.head;
  while (next != kNoIndex && next < h.geometry.receive_buffers &&
         count < h.geometry.receive_buffers) {
    ReceivedBuffer buffer;
    if (!reader.copy(reader.layout().received + std::uint64_t{next} * sizeof buffer, buffer))
      return EINVAL;
    list(senders, buffer.source, h.geometry.size);
    ++count;
    next = buffer.next;
  }
  const std::uint32_t tail = h.inbox_tail.load(std::memory_order_relaxed);
  const std::uint32_t waiting = std::min(tail - h.inbox_head, h.geometry.inbox_entries);
  for (std::uint32_t i = 0; i < waiting; ++i) {
    const std::uint32_t place = (h.inbox_head + i) % h.geometry.inbox_entries;
    std::uint32_t source = 0;
    if (!reader.copy(reader.layout().inbox + std::uint64_t{place} * sizeof(InboxEntry) +
                         offsetof(InboxEntry, source),
                     source))
      return EINVAL;
    list(senders, source, h.geometry.size);
  }
  count += waiting;
  return 0;
}

int read_sending(const Reader& reader, std::set<std::uint32_t>& peers) {
  const std::uint32_t size = reader.header().geometry.size;
  constexpr std::uint32_t kAtOnce = 64;
  for (std::uint32_t first = 0; first < size; first += kAtOnce) {
    std::array<PeerState, kAtOnce> states;
    const std::uint32_t count = std::min(kAtOnce, size - first);
    const std::uint64_t at = reader.layout().peers + std::uint64_t{first} * sizeof(PeerState);
    // Bytes after the last peer are read too, and not used.
    if (!reader.copy(at, states)) return EINVAL;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (states.at(i).head != kNoIndex) list(peers, first + i, size);
    }
  }
  return 0;
}

}  // namespace

int read_queues(int fd, QueueSummary& queues) {
  const auto reader = Reader::open(fd);
  if (!reader) return EINVAL;
  std::set<std::uint32_t> senders, peers;
  queues = {};
  if (const int error = read_received(*reader, queues.received, senders); error != 0) return error;
  if (const int error = read_sending(*reader, peers); error != 0) return error;
  queues.received_from.assign(senders.begin(), senders.end());
  queues.sending_to.assign(peers.begin(), peers.end());
  return 0;
}

}  // namespace score::pm
