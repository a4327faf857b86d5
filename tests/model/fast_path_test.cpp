// The fast path of a message must have the same effect as the slow path. The same history is played
// over two networks, in one of which every frame takes the slow path. After each step the whole
// segments of all ranks are compared.
#include "tests/model/sim_network.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

namespace score::pm::model {
namespace {

constexpr std::uint32_t kRanks = 3;
constexpr std::uint32_t kWritten = 4000;  // bytes of a rank's memory that other ranks write to

class StepClock final : public JobClock {
 public:
  explicit StepClock(const SimNetwork& network) : network_(network) {}

  Microseconds now() override { return static_cast<Microseconds>(network_.now); }

 private:
  const SimNetwork& network_;
};

struct Shape {
  Geometry geometry;
  SegmentIdentity identity;
  Faults faults;
};

// Holds all ranks of one of the two networks. Both networks read and write `memory`.
class World {
 public:
  World(const Shape& shape, std::uint64_t seed, std::vector<std::byte>& memory,
        bool may_use_fast_path)
      : random_(seed), network_(random_, shape.faults), clock_(network_) {
    const SegmentLayout layout = *SegmentLayout::of(shape.geometry);
    for (std::uint32_t i = 0; i < kRanks; ++i) {
      memories_[i] = std::make_unique<SegmentMemory>(layout.total);
      SegmentIdentity identity = shape.identity;
      identity.rank = i;
      const Segment s = format_segment(memories_[i]->data(), shape.geometry, layout, identity);
      for (std::uint32_t k = 0; k < kRanks; ++k) s.peer(k).address = SimDevice::address_of(k);
      const auto address = reinterpret_cast<std::uintptr_t>(&memory[i * kWritten]);
      s.region(0) = {address, kWritten, 77, 1, 0};
      devices_[i] = std::make_unique<SimDevice>(network_, i,
                                                shape.geometry.payload_bytes + sizeof(FrameHeader));
      ChannelOptions options;
      options.may_use_fast_path = may_use_fast_path;
      ends_[i] = std::make_unique<Channel>(s, *devices_[i], clock_, options);
    }
  }

  void pass(std::uint64_t microseconds) { network_.now += microseconds; }

  // These functions return what happened.
  int send(std::uint32_t from, std::uint32_t to, std::uint32_t length, bool more_follows) {
    std::byte* buffer = nullptr;
    if (const int error = ends_[from]->get_send_buffer(to, length, &buffer); error != 0) {
      return error;
    }
    std::memset(buffer, static_cast<int>(++sent_), length);
    return ends_[from]->send(more_follows);
  }

  int write(std::uint32_t from, std::uint32_t to, std::uint32_t length) {
    OperationId op = 0;
    const int error = ends_[from]->memory().write(to, 0, 0, {0, 77, 0}, length, op);
    if (error == 0) operations_[from].push_back(op);
    return error;
  }

  int send_parts(std::uint32_t from, std::uint32_t to, std::uint32_t length) {
    OperationId op = 0;
    const PartHead head{{++sent_, 0}};
    const int error = ends_[from]->memory().send_parts(to, 0, 0, length, head, op);
    if (error == 0) operations_[from].push_back(op);
    return error;
  }

  int receive(std::uint32_t at) {
    ReceivedMessage message;
    if (!ends_[at]->received().receive(message)) return -1;
    held_[at].push_back(message.ticket);
    return static_cast<int>(message.bytes.size());
  }

  void release(std::uint32_t at) {
    if (held_[at].empty()) return;
    ends_[at]->received().release(held_[at].front());
    held_[at].pop_front();
  }

  int progress(std::uint32_t at) {
    if (!operations_[at].empty() &&
        Operations(ends_[at]->segment()).test(operations_[at].front()) != EINPROGRESS) {
      operations_[at].pop_front();
    }
    return static_cast<int>(ends_[at]->progress());
  }

  void resume(std::uint32_t at) { ends_[at]->segment().header().resumes.fetch_add(1); }

  std::span<const std::byte> bytes(std::uint32_t rank) const {
    return {memories_[rank]->data(), memories_[rank]->size()};
  }

  std::size_t fast_frames() const {
    std::size_t sum = 0;
    for (const auto& end : ends_) sum += end->fast_frames();
    return sum;
  }

 private:
  Random random_;
  SimNetwork network_;
  StepClock clock_;
  std::array<std::unique_ptr<SegmentMemory>, kRanks> memories_;
  std::array<std::unique_ptr<SimDevice>, kRanks> devices_;
  std::array<std::unique_ptr<Channel>, kRanks> ends_;
  std::array<std::deque<std::uint32_t>, kRanks> held_;
  std::array<std::deque<OperationId>, kRanks> operations_;
  unsigned sent_ = 0;
};

Shape shape_of(Random& random) {
  Shape shape;
  shape.geometry.size = kRanks;
  shape.geometry.payload_bytes = kMinPayload + static_cast<std::uint32_t>(random() % 200);
  shape.geometry.send_buffers = 2 + static_cast<std::uint32_t>(random() % 30);
  shape.geometry.receive_buffers = 2 + static_cast<std::uint32_t>(random() % 30);
  shape.geometry.descriptors = shape.geometry.send_buffers + 4;
  shape.geometry.regions = 2;
  shape.geometry.operations = 4;
  shape.geometry.inbox_entries = 8;
  shape.geometry.pool_buffers = 1;
  shape.geometry.pool_buffer_bytes = 256;
  shape.identity = {.key = 99, .window = static_cast<std::uint16_t>(2 + random() % 60)};
  shape.identity.nonce_seed = 5;
  if (random() % 4 != 0) return shape;  // the fast path needs a good network
  const double worse = static_cast<double>(random() % 20) / 100;
  shape.faults = {worse, worse / 2, worse / 2, worse, worse};
  return shape;
}

// Runs one step, which is the same in both networks, and returns its result.
int step(World& world, Random random) {
  const auto at = static_cast<std::uint32_t>(random() % kRanks);
  const auto to = static_cast<std::uint32_t>((at + 1 + random() % (kRanks - 1)) % kRanks);
  const std::uint64_t number = random();
  switch (random() % 16) {
    case 0:
      world.pass(number % 50 == 0 ? number % 20'000 : number % 300);
      return 0;
    case 1:
    case 2:
    case 3:
      return world.send(at, to, static_cast<std::uint32_t>(number % 64), random() % 8 == 0);
    case 4:
      return world.send(at, to, static_cast<std::uint32_t>(number % kMinPayload), false);
    case 5:
      if (number % 4 == 1)
        return world.send_parts(at, to, static_cast<std::uint32_t>(number % 900));
      return number % 4 == 0 ? world.write(at, to, static_cast<std::uint32_t>(number % 1500)) : 0;
    case 6:
      if (number % 32 == 0) world.resume(at);
      return 0;
    case 7:
    case 8:
    case 9:
      return world.receive(at);
    case 10:
    case 11:
    case 12:
      world.release(at);
      return 0;
    default:
      world.pass(number % 20);
      return world.progress(at);
  }
}

void play(std::uint64_t seed, std::size_t& fast) {
  Random random(seed);
  const Shape shape = shape_of(random);
  std::vector<std::byte> memory(kRanks * kWritten);
  World quick(shape, seed, memory, true);
  World slow(shape, seed, memory, false);
  for (int i = 0; i < 1500; ++i) {
    const Random now(random());
    ASSERT_EQ(step(quick, now), step(slow, now)) << "seed " << seed << " step " << i;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      const auto a = quick.bytes(rank), b = slow.bytes(rank);
      ASSERT_TRUE(std::memcmp(a.data(), b.data(), a.size()) == 0)
          << "seed " << seed << " step " << i << " rank " << rank;
    }
  }
  ASSERT_EQ(slow.fast_frames(), 0u);
  fast += quick.fast_frames();
}

TEST(FastPath, EverySegmentIsAsAfterSlowPath) {
  std::size_t fast = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    ASSERT_NO_FATAL_FAILURE(play(seed, fast));
  }
  EXPECT_GT(fast, 1000u);
}

// Tests the engine alone, from any state that its numbers allow.
TEST(FastPath, PlainAcksAreHandledAsByTheRules) {
  const Engine<> engine(EngineLimits{.window = 16});
  Random random(3);
  unsigned compared = 0;
  for (int i = 0; i < 2'000'000; ++i) {
    SendSide<std::uint32_t> s;
    s.acked = static_cast<std::uint32_t>(random() % 40) - 20;
    s.max_sent = s.acked + static_cast<std::uint32_t>(random() % 8);
    s.sent = s.max_sent - (random() % 8 == 0 && s.max_sent != s.acked ? 1 : 0);
    s.queued = s.max_sent + (random() % 8 == 0 ? 1 : 0);
    s.flags = static_cast<std::uint8_t>(random() % 2 == 0 ? random() % 64 : random() % 4 * 4);
    const std::uint32_t flying = s.max_sent - s.acked;
    if (flying != 0) s.timed = s.max_sent - static_cast<std::uint32_t>(random() % flying);
    if (flying == 0) s.set(s.kTiming, false);
    s.srtt = random() % 4 == 0 ? 0 : static_cast<Microseconds>(random() % 3000);
    s.backoff = random() % 4 == 0 ? 1 : 0;
    s.silent = static_cast<std::uint8_t>(random() % 3);
    s.window = static_cast<std::uint16_t>(1 + random() % 16);
    const auto k = s.acked + static_cast<std::uint32_t>(random() % 9);
    const auto now = static_cast<Microseconds>(random() % 2'000'000);
    if (!engine.is_plain_ack(s, k)) continue;
    SendSide<std::uint32_t> by_rules = s;
    const bool is_new = engine.on_packet_control(by_rules, {ControlKind::Ack, k, 0, 0}, now);
    ASSERT_EQ(is_new, k != s.acked);
    if (is_new) engine.on_plain_ack(s, now);
    ASSERT_EQ(s, by_rules);
    compared += is_new ? 1 : 0;
  }
  EXPECT_GT(compared, 20'000u);
}

}  // namespace
}  // namespace score::pm::model
