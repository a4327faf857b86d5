// pm_faults [--messages N] [--seed S] [--tag]
//
// Four ranks send each other N messages in total (10^6 by default) over the shipped channel and a
// link that loses 30 % of the frames, duplicates 10 %, delays 10 % and damages 10 % in a way that
// the link itself does not detect. Each message carries a hash over all of it that PM does not
// know. Time is virtual: when nothing can happen, it jumps to the next timer. Prints the broken
// claim, else the counts of events; the same seed gives the same run.
#include "pmlib/wire/siphash.hpp"
#include "tests/model/sim_network.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace score::pm::model {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint32_t kRanks = 4;
constexpr Faults kFaults{.lose = 0.3, .duplicate = 0.1, .corrupt = 0.1, .delay = 0.1};

struct Plan {
  std::uint32_t messages = 1'000'000;
  std::uint64_t seed = 1;
  FrameAuth auth = FrameAuth::Key;
};

void require(bool condition, const char* claim) {
  if (!condition) throw std::runtime_error(claim);
}

// Holds the frames in flight to each rank.
class Link {
 public:
  explicit Link(std::uint64_t seed) : random_(seed) {}

  void send(std::uint32_t to, const FrameOut& frame) {
    ++frames;
    if (chance(kFaults.lose)) return;
    Bytes bytes;
    bytes.reserve(frame.size());
    bytes.insert(bytes.end(), frame.head.begin(), frame.head.end());
    bytes.insert(bytes.end(), frame.body.begin(), frame.body.end());
    if (chance(kFaults.duplicate)) put(to, bytes);
    if (chance(kFaults.corrupt)) damage(bytes);
    put(to, std::move(bytes));
  }

  std::size_t deliver(std::uint32_t to, FrameSink& sink, std::size_t limit) {
    std::size_t count = 0;
    for (auto& queue = under_way_[to]; count < limit && !queue.empty(); ++count) {
      const Bytes frame = std::move(queue.front());
      queue.pop_front();
      sink.on_frame(frame);
    }
    release_late(to);
    return count;
  }

  bool is_empty(std::uint32_t to) const { return under_way_[to].empty() && late_[to].empty(); }

  std::uint64_t frames = 0;

 private:
  bool chance(double p) { return static_cast<double>(random_() >> 11) * 0x1p-53 < p; }

  void put(std::uint32_t to, Bytes bytes) {
    (chance(kFaults.delay) ? late_ : under_way_)[to].push_back(std::move(bytes));
  }

  // Late frames arrive after some that were sent later.
  void release_late(std::uint32_t to) {
    for (auto& late = late_[to]; !late.empty() && random_() % 2 == 0;) {
      under_way_[to].push_back(std::move(late.front()));
      late.pop_front();
    }
  }

  // Damages a few bits, or overwrites a piece.
  void damage(Bytes& bytes) {
    const std::size_t at = random_() % bytes.size();
    if (random_() % 2 == 0) {
      const std::size_t end = std::min(bytes.size(), at + 1 + random_() % 64);
      for (std::size_t i = at; i < end; ++i) bytes[i] = static_cast<std::byte>(random_());
      return;
    }
    for (std::uint64_t flips = 1 + random_() % 3; flips > 0; --flips) {
      bytes[random_() % bytes.size()] ^= std::byte{static_cast<std::uint8_t>(1u << random_() % 8)};
    }
  }

  Random random_;
  std::array<std::deque<Bytes>, kRanks> under_way_, late_;
};

class LinkDevice final : public PacketDevice {
 public:
  LinkDevice(Link& link, std::uint32_t rank) : link_(link), rank_(rank) {}

  std::size_t send(const PeerAddress& to, std::span<const FrameOut> frames) override {
    for (const FrameOut& frame : frames) link_.send(to.bytes[0], frame);
    return frames.size();
  }

  std::size_t receive(FrameSink& sink, std::size_t limit) override {
    return link_.deliver(rank_, sink, limit);
  }

  int poll_fd() const override { return -1; }

  std::size_t frame_bytes() const override { return 1500; }

 private:
  Link& link_;
  std::uint32_t rank_;
};

struct VirtualClock final : JobClock {
  Microseconds time = 0;

  Microseconds now() override { return time; }
};

struct Stamp {  // at the start of every message
  std::uint64_t hash;
  std::uint32_t source, number, length;
};

// Returns the hash of the message after the hash field.
std::uint64_t hash_of(std::span<const std::byte> message) {
  return SipHash({1, 2}).finish(message.subspan(sizeof(std::uint64_t)));
}

class Rank {
 public:
  Rank(Link& link, VirtualClock& clock, const Plan& plan, std::uint32_t rank)
      : rank_(rank), random_(plan.seed * 8 + rank), device_(link, rank) {
    Geometry geometry;
    geometry.size = kRanks;
    geometry.payload_bytes = 256;
    const auto layout = *SegmentLayout::of(geometry);
    memory_ = std::make_unique<SegmentMemory>(layout.total);
    segment_ = format_segment(memory_->data(), geometry, layout,
                              {.key = 0xfeed, .rank = rank, .window = 64, .auth = plan.auth});
    for (std::uint8_t i = 0; i < kRanks; ++i) segment_.peer(i).address.bytes[0] = i;
    ChannelOptions options;
    options.tries_before_dead = 255;
    channel_ = std::make_unique<Channel>(segment_, device_, clock, options);
    constexpr std::uint32_t kPairs = kRanks * (kRanks - 1);
    left_.fill((plan.messages + kPairs - 1) / kPairs);
    left_[rank] = 0;
  }

  // Returns true if anything happened.
  bool step() {
    bool acted = channel_->progress() > 0;
    for (ReceivedMessage m; channel_->received().receive(m); acted = true) {
      check(m);
      channel_->received().release(m.ticket);
    }
    for (std::uint32_t peer = 0; peer < kRanks; ++peer) {
      // A few messages per peer are sent, so that a blocked peer does not take all buffers.
      for (int i = 0; i < 4 && left_[peer] > 0 && send_one(peer); ++i) acted = true;
    }
    return acted;
  }

  bool is_finished() const {
    return std::all_of(left_.begin(), left_.end(), [](auto n) { return n == 0; }) &&
           channel_->is_quiet();
  }

  bool next_deadline(Microseconds& in) { return channel_->next_deadline(in); }

  std::uint32_t sent_to(std::uint32_t peer) const { return next_to_[peer]; }

  std::uint32_t received_from(std::uint32_t peer) const { return next_from_[peer]; }

  const Counters& counters() const { return segment_.header().counters; }

 private:
  bool send_one(std::uint32_t peer) {
    const auto length = static_cast<std::uint32_t>(sizeof(Stamp) + random_() % 200);
    std::byte* buffer = nullptr;
    if (segment_.header().free_descriptors < 16 && segment_.peer(peer).head != kNoIndex) {
      return false;
    }
    if (channel_->get_send_buffer(peer, length, &buffer) != 0) return false;
    Stamp stamp{0, rank_, next_to_[peer]++, length};
    std::memcpy(buffer, &stamp, sizeof stamp);
    for (std::uint32_t i = sizeof stamp; i < length; ++i) {
      buffer[i] = static_cast<std::byte>(stamp.number + i);
    }
    stamp.hash = hash_of({buffer, length});
    std::memcpy(buffer, &stamp, sizeof stamp.hash);
    --left_[peer];
    return channel_->send() == 0;
  }

  void check(const ReceivedMessage& m) {
    Stamp stamp;
    require(m.bytes.size() >= sizeof stamp, "messages are not shortened");
    std::memcpy(&stamp, m.bytes.data(), sizeof stamp);
    require(stamp.hash == hash_of(m.bytes), "contents arrive as they were sent");
    require(stamp.source == m.source && stamp.length == m.bytes.size(), "messages arrive whole");
    require(stamp.number == next_from_[m.source]++, "exactly once and in order");
  }

  std::uint32_t rank_;
  Random random_;
  LinkDevice device_;
  std::unique_ptr<SegmentMemory> memory_;
  Segment segment_;
  std::unique_ptr<Channel> channel_;
  std::array<std::uint32_t, kRanks> left_{}, next_to_{}, next_from_{};
};

class Job {
 public:
  explicit Job(const Plan& plan) : link_(plan.seed) {
    for (std::uint32_t i = 0; i < kRanks; ++i) {
      ranks_.push_back(std::make_unique<Rank>(link_, clock_, plan, i));
    }
  }

  void run() {
    for (std::uint64_t idle = 0; !is_finished(); clock_.time += 10) {
      const bool acted = step();
      idle = acted ? 0 : idle + 1;
      require(idle < 100'000, "the job comes to its end");
      if (!acted) jump();
    }
    for (std::uint32_t i = 0; i < kRanks; ++i) {
      for (std::uint32_t k = 0; k < kRanks; ++k) {
        require(ranks_[i]->sent_to(k) == ranks_[k]->received_from(i), "every message arrived");
      }
    }
    report();
  }

 private:
  bool step() {
    bool acted = false;
    for (auto& rank : ranks_) acted |= rank->step();
    return acted;
  }

  bool is_finished() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](auto& r) { return r->is_finished(); });
  }

  // Moves the time to the next timer.
  void jump() {
    Microseconds soonest = 1000;
    for (std::uint32_t i = 0; i < kRanks; ++i) {
      Microseconds in = 0;
      if (ranks_[i]->next_deadline(in)) soonest = std::min(soonest, in);
      if (!link_.is_empty(i)) soonest = 0;
    }
    clock_.time += soonest;
  }

  void report() {
    Counters sum;
    for (auto& rank : ranks_) {
      const Counters& c = rank->counters();
      sum.messages_received += c.messages_received;
      sum.frames_resent += c.frames_resent;
      sum.duplicates += c.duplicates;
      sum.dropped_corrupt += c.dropped_corrupt + c.dropped_forged;
      sum.dropped_malformed += c.dropped_malformed + c.dropped_foreign + c.dropped_stale;
    }
    std::printf(
        "%llu messages once and in order: %llu frames, %llu resent, %llu duplicates, %llu damaged "
        "in the header, %llu elsewhere\n",
        static_cast<unsigned long long>(sum.messages_received),
        static_cast<unsigned long long>(link_.frames),
        static_cast<unsigned long long>(sum.frames_resent),
        static_cast<unsigned long long>(sum.duplicates),
        static_cast<unsigned long long>(sum.dropped_malformed),
        static_cast<unsigned long long>(sum.dropped_corrupt));
    require(sum.frames_resent > 0 && sum.duplicates > 0 && sum.dropped_corrupt > 0,
            "the link was as bad as it should be");
  }

  Link link_;
  VirtualClock clock_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

bool read_options(int argc, char** argv, Plan& plan) {
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--tag") {
      plan.auth = FrameAuth::Tag;
    } else if (option == "--messages" && i + 1 < argc) {
      plan.messages = static_cast<std::uint32_t>(std::strtoul(argv[++i], nullptr, 10));
    } else if (option == "--seed" && i + 1 < argc) {
      plan.seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace score::pm::model

int main(int argc, char** argv) {
  using namespace score::pm::model;
  Plan plan;
  if (!read_options(argc, argv, plan)) {
    std::fprintf(stderr, "usage: pm_faults [--messages N] [--seed S] [--tag]\n");
    return 2;
  }
  try {
    Job(plan).run();
  } catch (const std::exception& e) {
    std::printf("FAILED seed %llu: not true: %s\n", static_cast<unsigned long long>(plan.seed),
                e.what());
    return 1;
  }
  return 0;
}
