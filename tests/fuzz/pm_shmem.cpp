// This fuzz target puts entries of a hostile peer of the node into the inbox of a live context.
// Whatever they contain, memory that is not registered must stay unchanged, and received data must
// lie in a segment.
//
// The input is a list of entries of 56 bytes: kind, buffer, length, source, then the contents.
#include "pmlib/core/regions.hpp"
#include "pmlib/network/network.hpp"
#include "pmlib/shmem/shmem.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace score::pm;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kBytes = 4096;

void require(bool promise) {
  if (!promise) std::abort();
}

// Holds two contexts of this process: the first is attacked, and the second belongs to the
// attacker.
struct Node {
  Node() {
    JobNetwork network;
    network.key = 7;
    for (int i = 0; i < 2; ++i) network.ranks.push_back({"host", "127.0.0.1:0", {}});
    int error = 0;
    for (std::uint32_t i = 0; i < 2; ++i) {
      contexts[i] = create_context(network, i, true, "", error);
      require(contexts[i] != nullptr);
      contexts[i]->segment().header().owner_pid.store(static_cast<std::uint32_t>(getpid()));
    }
    wake = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const auto open_peer = [this](std::uint32_t peer) {
      return fcntl(contexts[peer]->fd(), F_DUPFD_CLOEXEC, 0);
    };
    regions = std::make_unique<Regions>(contexts[0]->segment());
    shmem = std::make_unique<Shmem>(contexts[0]->segment(), open_peer, wake, false);
  }

  ~Node() { close(wake); }

  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  std::unique_ptr<MappedSegment> contexts[2];
  std::unique_ptr<Regions> regions;
  std::unique_ptr<Shmem> shmem;
  int wake = -1;
};

void put(const Segment& to, const std::uint8_t* bytes, std::size_t size) {
  const std::uint32_t mask = to.geometry().inbox_entries - 1;
  const std::uint32_t ticket = to.header().inbox_tail.load();
  InboxEntry& entry = to.inbox(ticket & mask);
  if (entry.turn.load() != ticket) return;
  to.header().inbox_tail.store(ticket + 1);
  entry.kind = static_cast<std::uint16_t>(bytes[0] % 10);
  entry.buffer = bytes[1];
  entry.length = std::uint32_t{bytes[2]} << (bytes[3] % 25);
  entry.source = bytes[3] < 200 ? 1 : bytes[3];
  std::memcpy(entry.bytes.data(), bytes + 4, std::min(size - 4, sizeof entry.bytes));
  entry.turn.store(ticket + 1);
}

void look_at(const ReceivedMessage& message) {
  std::uint8_t sum = 0;
  for (const std::byte b : message.bytes) sum ^= std::to_integer<std::uint8_t>(b);
  [[maybe_unused]] volatile std::uint8_t used = sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Node node;
  std::vector<std::byte> open(kBytes), closed(kBytes, std::byte{0xee});
  std::uint32_t region = 0;
  std::uint64_t offset = 0;
  require(node.regions->add(open.data(), open.size(), region, offset) == 0);
  const Segment& mine = node.contexts[0]->segment();
  mine.region(region).nonce = 5;  // the attacker knows it
  for (constexpr std::size_t kEntry = 56; size >= kEntry; data += kEntry, size -= kEntry) {
    // The attacker also controls the state of a buffer, because it lies in the attacker's segment.
    const Segment& theirs = node.contexts[1]->segment();
    std::uint32_t state = 0;
    std::memcpy(&state, data + 20, sizeof state);
    theirs.pool_used(data[1] % theirs.geometry().pool_buffers).store(state);
    put(mine, data, kEntry);
    node.shmem->progress();
    ReceivedMessage message;
    if (data[4] % 2 == 0 && node.shmem->receive(message)) {
      look_at(message);
      node.shmem->release(message.ticket);
    }
  }
  for (const std::byte b : closed) require(b == std::byte{0xee});
  return 0;
}
