// This program, pm_sim [--seed S] [--seeds N] [--nodes N] [--messages M] [--hard] [--tight], runs
// whole jobs of PM in virtual time, each from one seed. N endpoints send each other messages, write
// and read remote memory, consume at their own pace, are suspended, saved and restored into
// different memory, and restarted as a new generation. The network loses, duplicates, delays and
// damages frames. The program checks that
//   every message arrives exactly once, in order, with its contents;
//   every accepted operation ends exactly once, with the right result, and its bytes are right;
//   memory that is not registered is never written;
//   nothing of an old generation is ever delivered;
//   the job ends.
// It prints the seed that fails; the same seed gives the same run.
#include "tests/model/sim_network.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace score::pm::model {
namespace {

constexpr std::uint32_t kRegionBytes = 4096;
constexpr std::uint64_t kTick = 20;
constexpr std::uint32_t kReads = 4;  // per rank at a time

struct Plan {
  std::uint64_t seed = 1;
  std::uint32_t nodes = 3;
  std::uint32_t messages = 40;  // per node
  bool hard = false;            // 30 % loss, 10 % duplicated, 10 % late, 10 % damaged
  bool tight = false;           // very few buffers: ranks wait for each other
};

void require(bool condition, const char* claim) {
  if (!condition) throw std::runtime_error(claim);
}

struct Stamp {  // at the start of every message
  std::uint32_t generation, source, number, length;
};

std::byte pattern(std::uint32_t source, std::uint32_t number, std::uint32_t i) {
  return static_cast<std::byte>(source * 31 + number * 7 + i * 13 + (i >> 8));
}

// Runs one rank: its segment, channel, application and memory.
class Node {
 public:
  Node(SimNetwork& network, Random& random, const Plan& plan, std::uint32_t rank)
      : network_(network), random_(random), plan_(plan), rank_(rank), clock_{network} {
    geometry_.size = plan.nodes;
    geometry_.payload_bytes = 256 + static_cast<std::uint32_t>(random() % 256);
    geometry_.send_buffers = 4 + static_cast<std::uint32_t>(random() % 8);
    geometry_.receive_buffers = 2 + static_cast<std::uint32_t>(random() % 8);
    geometry_.descriptors = geometry_.send_buffers + 4;
    if (plan.tight) geometry_.send_buffers = geometry_.receive_buffers = geometry_.descriptors = 2;
    geometry_.regions = 4;
    geometry_.operations = kReads;
    geometry_.inbox_entries = 8;
    geometry_.pool_buffers = 1;
    geometry_.pool_buffer_bytes = 256;
    window_ = static_cast<std::uint16_t>(4 + random() % 28);
    owned_.resize(kRegionBytes);  // never grows: regions hold its address
    guard_.assign(kRegionBytes, std::byte{0xee});
    image_.resize(kRegionBytes);
  }

  // All ranks use the same payload size and window.
  void agree_with(const Node& other) {
    geometry_.payload_bytes = other.geometry_.payload_bytes;
    window_ = other.window_;
  }

  void start(std::uint32_t generation) {
    generation_ = generation;
    layout_ = *SegmentLayout::of(geometry_);
    memory_ = std::make_unique<SegmentMemory>(layout_.total);
    segment_ = format_segment(memory_->data(), geometry_, layout_, identity());
    for (std::uint32_t i = 0; i < plan_.nodes; ++i) {
      segment_.peer(i).address = SimDevice::address_of(i);
    }
    // Sequence numbers start near their end, so that every run wraps.
    const Engine<> engine(EngineLimits{.window = window_});
    for (std::uint32_t i = 0; i < plan_.nodes; ++i) {
      segment_.peer(i).send = engine.fresh_sender(0xfffffff0);
      segment_.peer(i).receive = engine.fresh_receiver(0xfffffff0);
    }
    segment_.region(0) = {reinterpret_cast<std::uintptr_t>(owned_.data()), kRegionBytes, 77, 1, 0};
    segment_.region(1) = {reinterpret_cast<std::uintptr_t>(guard_.data()), kRegionBytes, 78, 0, 0};
    segment_.region(2) = {reinterpret_cast<std::uintptr_t>(image_.data()), kRegionBytes, 79, 1, 0};
    for (std::uint32_t i = 0; i < kRegionBytes; ++i) image_[i] = pattern(rank_, 0, i);
    owned_.assign(kRegionBytes, std::byte{0});
    written_to_.assign(plan_.nodes, 0);
    next_to_.assign(plan_.nodes, 0);
    next_from_.assign(plan_.nodes, 0);
    sent_ = 0;
    held_.clear();
    owed_.clear();
    ops_.clear();
    attach();
  }

  void step() {
    if (suspended_until_ > network_.now) return;
    if (suspended_until_ != 0) wake();
    if (random_() % 4 != 0) channel_->progress();
    if (sent_ < plan_.messages && random_() % 3 == 0) act();
    take();
    if (!held_.empty() && random_() % 3 == 0) give_back();
    pay_owed();
    finish_operations();
    if (random_() % 400 == 0) suspend();
    if (random_() % 200 == 0) move_elsewhere();
  }

  bool is_finished() const {
    return sent_ == plan_.messages && channel_->is_quiet() && held_.empty() && owed_.empty() &&
           ops_.empty();
  }

  // The segment contains the count, so it survives moves.
  std::uint64_t time_outs() const { return segment_.header().counters.time_outs; }

  std::uint32_t sent_to(std::uint32_t peer) const { return next_to_[peer]; }

  std::uint32_t received_from(std::uint32_t peer) const { return next_from_[peer]; }

  // Returns true if the bytes that this rank's finished writes have put into `peer` are this rank's
  // image.
  bool has_written_right(const Node& peer) const {
    const std::uint32_t start = rank_ * (kRegionBytes / plan_.nodes);
    for (std::uint32_t i = start; i < start + written_to_[peer.rank_]; ++i) {
      if (peer.owned_[i] != pattern(rank_, 0, i)) return false;
    }
    return true;
  }

  Microseconds channel_clock() const {
    return static_cast<Microseconds>(network_.now - clock_.stopped);
  }

  std::string describe() const {
    const SegmentHeader& h = segment_.header();
    std::string text = "rank " + std::to_string(rank_) + " sent " + std::to_string(sent_) +
                       " ops " + std::to_string(ops_.size()) + " held " +
                       std::to_string(held_.size()) + " live " + std::to_string(h.live_operations) +
                       " free descriptors " + std::to_string(h.free_descriptors) + "\n";
    for (std::uint32_t i = 0; i < plan_.nodes; ++i) {
      const PeerState& p = segment_.peer(i);
      text += "  peer " + std::to_string(i) + " acked " + std::to_string(p.send.acked) + " sent " +
              std::to_string(p.send.sent) + " max " + std::to_string(p.send.max_sent) + " queued " +
              std::to_string(p.send.queued) + " flags " + std::to_string(p.send.flags) + " recv " +
              std::to_string(p.receive.recv) + " flags " + std::to_string(p.receive.flags) +
              " window " + std::to_string(p.send.window) + " srtt " + std::to_string(p.send.srtt) +
              " backoff " + std::to_string(p.send.backoff) + " due in " +
              std::to_string(static_cast<int>(p.send.deadline - channel_clock())) + "\n";
    }
    return text;
  }

 private:
  struct SimClock final : JobClock {
    explicit SimClock(SimNetwork& n) : network(n) {}

    SimNetwork& network;
    std::uint64_t stopped = 0;

    Microseconds now() override { return static_cast<Microseconds>(network.now - stopped); }
  };

  struct RunningOp {
    OperationId id;
    bool must_fail;
    std::uint32_t peer, offset, length;
    std::uint32_t local;  // 2 = write of the image, 0 = read into owned memory
    bool is_read;
    bool is_large;
  };

  // The seed determines all random numbers of a run.
  SegmentIdentity identity() {
    return {.key = 0xfeed,
            .generation = generation_,
            .rank = rank_,
            .channel = 3,
            .window = window_,
            .nonce_seed = random_() | 1};
  }

  struct Owed {  // a fetched announcement
    std::uint32_t peer;
    std::uint32_t op;
  };

  void attach() {
    device_ =
        std::make_unique<SimDevice>(network_, rank_, geometry_.payload_bytes + sizeof(FrameHeader));
    ChannelOptions options;
    options.tries_before_dead = 255;
    channel_ = std::make_unique<Channel>(segment_, *device_, clock_, options);
  }

  void suspend() {
    suspended_from_ = network_.now;
    suspended_until_ = network_.now + 500 + random_() % 20'000;
  }

  void wake() {
    clock_.stopped += network_.now - suspended_from_;
    suspended_until_ = 0;
    segment_.header().resumes.fetch_add(1);
  }

  // Saves the context and restores it into different memory, as a context switch or migration does.
  void move_elsewhere() {
    require(validate_image(memory_->span()) == 0, "a running context is a valid image");
    auto other = std::make_unique<SegmentMemory>(layout_.total);
    const Segment fresh = format_segment(other->data(), geometry_, layout_, identity());
    for (std::uint32_t i = 0; i < plan_.nodes; ++i) {
      fresh.peer(i).address = SimDevice::address_of(i);
    }
    require(restore_image(fresh, memory_->span()) == 0, "a valid image can be restored");
    for (ReceivedMessage& m : held_) {
      m.bytes = {fresh.receive_buffer(static_cast<std::uint16_t>(m.ticket)) + sizeof(FrameHeader),
                 m.bytes.size()};
    }
    channel_.reset();
    memory_ = std::move(other);
    segment_ = fresh;
    attach();
  }

  void act() {
    const auto peer = static_cast<std::uint32_t>(random_() % plan_.nodes);
    if (peer == rank_) return;
    // With few buffers many reads are the worst case, because each takes a buffer there and a
    // descriptor here.
    switch (random_() % (plan_.tight ? 4 : 8)) {
      case 0:
        return start_write(peer);
      case 1:
        return start_read(peer);
      case 2:
        return start_large(peer);
      default:
        return send_message(peer);
    }
  }

  void send_message(std::uint32_t peer) {
    const auto length = static_cast<std::uint32_t>(
        sizeof(Stamp) + random_() % (geometry_.payload_bytes - sizeof(Stamp) + 1));
    std::byte* buffer = nullptr;
    if (channel_->get_send_buffer(peer, length, &buffer) != 0) return;
    if (random_() % 50 == 0) return channel_->queues().cancel();
    const Stamp stamp{generation_, rank_, next_to_[peer]++, length};
    std::memcpy(buffer, &stamp, sizeof stamp);
    for (std::uint32_t i = sizeof stamp; i < length; ++i) {
      buffer[i] = pattern(rank_, stamp.number, i);
    }
    require(channel_->send() == 0, "a lent buffer can be sent");
    ++sent_;
  }

  void start_write(std::uint32_t peer) {
    RunningOp op{0, random_() % 4 == 0, peer, 0, 0, 2, false, false};
    // Each rank writes into its own stripe of the peer's memory.
    const std::uint32_t stripe = kRegionBytes / plan_.nodes;
    op.offset = rank_ * stripe;
    op.length = static_cast<std::uint32_t>(random_() % (stripe + 1));
    RegionName remote{0, 77, op.offset};
    if (op.must_fail) remote = bad_name();
    if (channel_->memory().write(peer, 2, op.offset, remote, op.length, op.id) != 0) return;
    ops_.push_back(op);
    ++sent_;
  }

  RegionName bad_name() {
    switch (random_() % 4) {
      case 0:
        return {1, 78, 0};  // remembered, not registered
      case 1:
        return {0, 78, 0};  // wrong nonce
      case 2:
        return {0, 77, kRegionBytes + 1};  // beyond its end
      default:
        return {999, 77, 0};  // no such entry
    }
  }

  void start_read(std::uint32_t peer) {
    RunningOp op{0, random_() % 4 == 0, peer, 0, 0, 0, true, false};
    // Each read goes into its own part of this rank's stripe.
    const std::uint32_t part = kRegionBytes / plan_.nodes / kReads;
    op.offset = rank_ * (kRegionBytes / plan_.nodes) + free_part() * part;
    op.length = static_cast<std::uint32_t>(1 + random_() % part);
    RegionName remote{2, 79, op.offset};
    if (op.must_fail) remote = bad_name();
    if (channel_->memory().read(peer, 0, op.offset, remote, op.length, op.id) != 0) return;
    ops_.push_back(op);
    ++sent_;
  }

  // Returns a free part of the kReads parts; there are no more operations than parts.
  std::uint32_t free_part() const {
    std::uint32_t part = 0;
    const std::uint32_t start = rank_ * (kRegionBytes / plan_.nodes);
    const auto is_read_to = [&](std::uint32_t offset) {
      return std::any_of(ops_.begin(), ops_.end(), [offset](const RunningOp& op) {
        return op.is_read && op.offset == offset;
      });
    };
    while (part + 1 < kReads && is_read_to(start + part * (kRegionBytes / plan_.nodes / kReads))) {
      ++part;
    }
    return part;
  }

  void start_large(std::uint32_t peer) {
    RunningOp op{0, false, peer, 0, 512, 2, false, true};
    if (channel_->memory().announce(peer, 2, 0, op.length, op.id) != 0) return;
    ops_.push_back(op);
    ++sent_;
  }

  void take() {
    ReceivedMessage m;
    if (!channel_->received().receive(m)) return;
    if (m.kind == FrameKind::Large) {
      LargeHeader large;
      std::memcpy(&large, m.bytes.data(), sizeof large);
      require(large.length == 512 && large.region == 2, "an announcement arrives whole");
    } else {
      check_message(m);
    }
    held_.push_back(m);
  }

  void check_message(const ReceivedMessage& m) {
    Stamp stamp;
    require(m.bytes.size() >= sizeof stamp, "messages are not shortened");
    std::memcpy(&stamp, m.bytes.data(), sizeof stamp);
    require(stamp.generation == generation_, "nothing of an old generation is delivered");
    require(stamp.source == m.source && stamp.length == m.bytes.size(), "messages arrive whole");
    require(stamp.number == next_from_[m.source]++, "exactly once and in order");
    for (std::uint32_t i = sizeof stamp; i < stamp.length; ++i) {
      require(m.bytes[i] == pattern(stamp.source, stamp.number, i), "contents are right");
    }
  }

  void give_back() {
    const std::size_t i = random_() % held_.size();
    const ReceivedMessage m = held_[i];
    if (m.kind == FrameKind::Large) {
      LargeHeader large;
      std::memcpy(&large, m.bytes.data(), sizeof large);
      owed_.push_back({m.source, large.op});
    }
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    channel_->received().release(m.ticket);
  }

  // Ranks that kept a buffer until their answer is sent could block each other, so a fetched
  // announcement is only noted.
  void pay_owed() {
    while (!owed_.empty()) {
      if (channel_->memory().end_remote(owed_.front().peer, owed_.front().op, 0) != 0) return;
      owed_.pop_front();
    }
  }

  void finish_operations() {
    for (std::size_t i = 0; i < ops_.size();) {
      const int result = Operations(segment_).test(ops_[i].id);
      if (result == EINPROGRESS) {
        ++i;
        continue;
      }
      const RunningOp op = ops_[i];
      ops_.erase(ops_.begin() + static_cast<std::ptrdiff_t>(i));
      require(result == (op.must_fail ? EACCES : 0), "operations end with the right result");
      if (op.is_read && !op.must_fail) {
        for (std::uint32_t k = op.offset; k < op.offset + op.length; ++k) {
          require(owned_[k] == pattern(op.peer, 0, k), "a read brings the peer's bytes");
        }
      }
      if (!op.is_read && !op.is_large && !op.must_fail) {
        written_to_[op.peer] = std::max(written_to_[op.peer], op.length);
      }
      for (const std::byte b : guard_) require(b == std::byte{0xee}, "unregistered memory is safe");
    }
  }

  SimNetwork& network_;
  Random& random_;
  const Plan& plan_;
  std::uint32_t rank_;
  SimClock clock_;
  Geometry geometry_;
  SegmentLayout layout_;
  std::uint16_t window_ = 0;
  std::uint32_t generation_ = 0;
  std::unique_ptr<SegmentMemory> memory_;
  Segment segment_;
  std::unique_ptr<SimDevice> device_;
  std::unique_ptr<Channel> channel_;
  std::uint64_t suspended_from_ = 0;
  std::uint64_t suspended_until_ = 0;  // 0 = not suspended
  std::vector<std::byte> owned_, guard_, image_;
  std::vector<std::uint32_t> next_to_, next_from_, written_to_;
  std::uint32_t sent_ = 0;
  std::deque<ReceivedMessage> held_;
  std::deque<Owed> owed_;
  std::vector<RunningOp> ops_;
};

class Simulation {
 public:
  explicit Simulation(const Plan& plan)
      : plan_(plan), random_(plan.seed), network_(random_, faults()) {
    for (std::uint32_t i = 0; i < plan_.nodes; ++i) {
      nodes_.push_back(std::make_unique<Node>(network_, random_, plan_, i));
      nodes_.back()->agree_with(*nodes_.front());
    }
    start_all(1);
  }

  void run() {
    // Some runs are interrupted by a restart, while frames of the old generation are still in
    // flight.
    const bool restarts = random_() % 4 == 0;
    if (restarts) {
      for (std::uint64_t ticks = random_() % 600; ticks > 0; --ticks) step();
      for (auto& node : nodes_) {
        node->start(2);
        for (std::uint64_t ticks = random_() % 5; ticks > 0; --ticks) step();
      }
      start_all(3);
    }
    run_to_rest();
    for (std::uint32_t i = 0; i < plan_.nodes; ++i) {
      for (std::uint32_t k = 0; k < plan_.nodes; ++k) {
        require(nodes_[i]->sent_to(k) == nodes_[k]->received_from(i), "every message arrived");
        require(nodes_[i]->has_written_right(*nodes_[k]),
                "a finished write has its bytes in place");
      }
    }
  }

  std::string describe() const {
    std::string text = "at " + std::to_string(network_.now) + " us\n";
    for (const auto& node : nodes_) text += node->describe();
    return text;
  }

  std::uint64_t frames() const { return network_.frames; }

  std::uint64_t virtual_us() const { return network_.now - SimNetwork::kStart; }

  std::uint64_t time_outs() const {
    std::uint64_t sum = 0;
    for (const auto& node : nodes_) sum += node->time_outs();
    return sum;
  }

 private:
  Faults faults() {
    if (plan_.hard) return {0.3, 0.1, 0.1, 0.1, 0.05};
    auto up_to = [this](double p) { return std::uniform_real_distribution<>(0, p)(random_); };
    if (random_() % 8 == 0) return {};
    return {up_to(0.3), up_to(0.1), up_to(0.1), up_to(0.2), up_to(0.2)};
  }

  void start_all(std::uint32_t generation) {
    for (auto& node : nodes_) node->start(generation);
  }

  void step() {
    network_.now += kTick;
    for (auto& node : nodes_) node->step();
  }

  void run_to_rest() {
    // The limit is far higher than necessary, even if a frame waits for many timeouts of a second.
    const std::uint64_t max_ticks =
        (300 + std::uint64_t{plan_.messages} * plan_.nodes / 5) * 1'000'000 / kTick;
    for (std::uint64_t tick = 0; tick < max_ticks; ++tick) {
      step();
      if (tick % 8 == 0 && all_finished()) return;
    }
    throw std::runtime_error("the job comes to rest");
  }

  bool all_finished() const {
    for (const auto& node : nodes_) {
      if (!node->is_finished()) return false;
    }
    return true;
  }

  Plan plan_;
  Random random_;
  SimNetwork network_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

// Contains the sums over all seeds.
struct Totals {
  std::uint64_t seeds = 0, failed = 0, frames = 0, messages = 0, time_outs = 0, virtual_us = 0;
};

bool run_one(const Plan& plan, Totals& totals) {
  Simulation simulation(plan);
  try {
    simulation.run();
  } catch (const std::exception& e) {
    std::printf("FAILED seed %llu nodes %u: not true: %s\n%s",
                static_cast<unsigned long long>(plan.seed), plan.nodes, e.what(),
                simulation.describe().c_str());
    return false;
  }
  totals.frames += simulation.frames();
  totals.messages += std::uint64_t{plan.messages} * plan.nodes;
  totals.time_outs += simulation.time_outs();
  totals.virtual_us += simulation.virtual_us();
  return true;
}

// A change of the rules affects the time per message, so it is printed.
void print(const Totals& t) {
  const double messages = static_cast<double>(std::max<std::uint64_t>(t.messages, 1));
  std::printf("%llu seeds, %llu failed, %llu frames; a message: %.0f us, %.2f time-outs\n",
              static_cast<unsigned long long>(t.seeds), static_cast<unsigned long long>(t.failed),
              static_cast<unsigned long long>(t.frames),
              static_cast<double>(t.virtual_us) / messages,
              static_cast<double>(t.time_outs) / messages);
}

}  // namespace
}  // namespace score::pm::model

int main(int argc, char** argv) {
  using namespace score::pm::model;
  Plan plan;
  std::uint64_t seeds = 1;
  bool nodes_given = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    auto value = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (option == "--seed") {
      plan.seed = value();
    } else if (option == "--seeds") {
      seeds = value();
    } else if (option == "--nodes") {
      plan.nodes = static_cast<std::uint32_t>(value());
      nodes_given = true;
    } else if (option == "--messages") {
      plan.messages = static_cast<std::uint32_t>(value());
    } else if (option == "--hard") {
      plan.hard = true;
    } else if (option == "--tight") {
      plan.tight = true;
    } else {
      std::fprintf(
          stderr,
          "usage: pm_sim [--seed S] [--seeds N] [--nodes N] [--messages M] [--hard] [--tight]\n");
      return 2;
    }
  }
  Totals totals;
  for (; totals.seeds < seeds && totals.failed < 5; ++totals.seeds, ++plan.seed) {
    if (!nodes_given) plan.nodes = 2 + static_cast<std::uint32_t>(plan.seed % 4);
    if (!run_one(plan, totals)) ++totals.failed;
  }
  print(totals);
  return totals.failed == 0 ? 0 : 1;
}
