#pragma once
// Brings blocks of bytes from all members to the head, up the tree: what nodes
// measured, and reports of idle jobs. The blocks are opaque. A member packs
// those from below and its own into few bundles, so the head wakes up once per
// child, and not once per node.
//
// A bundle is confirmed only when the bundles that carry its blocks on are: so
// a confirmation means that the head has them, whoever fails on the way.
// Without one it is repeated, to another member if beats go to another one by
// then; after a while the origin of a block learns that it failed, and sends it
// over TLS. A block may come to the head twice: it takes each once.

#include "base/time.hpp"
#include "gang/control/tree.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace score::gang {

using base::Duration;
using base::TimePoint;

// Which numbered blocks of one member have come.
class BlockWindow {
 public:
  static constexpr std::uint64_t kWidth = 64;

  // False: it has come before, or is kWidth older than the newest.
  bool take(std::uint64_t sequence);

 private:
  std::uint64_t newest_ = 0;
  std::uint64_t seen_ = 0;  // bit i: newest_ - i
};

class Gather {
 public:
  enum class Pace : std::uint8_t {
    Soon,       // a change that the head waits for
    Collected,  // a round of all members: it waits for those of members below
  };

  struct Limits {
    std::size_t bundle_bytes = 1'200;  // of blocks and their names, so that it fits one datagram
    Duration collect = std::chrono::milliseconds{20};      // per level below; a round
    Duration collect_soon = std::chrono::milliseconds{1};  // ... a change
    // A bundle without an answer is repeated after this; one that was received,
    // after `again`.
    Duration retry = std::chrono::milliseconds{25};
    Duration again = std::chrono::milliseconds{75};
    Duration patience = std::chrono::milliseconds{120};  // per level above; then it has failed
    std::size_t most_waiting = 16 * 1'024;  // bytes; then they go up before the round is whole
    std::size_t most_bytes = 768 * 1'024;   // on the way through this member
    std::size_t batches = 512;              // remembered, so that repeated ones are confirmed
  };

  // Around a block and a bundle, encoded: at most.
  static constexpr std::size_t kBlockBytes = 20;
  static constexpr std::size_t kMostAcked = 128;  // in one Ack

  struct Block {
    Position from = 0;  // it was made there
    std::uint64_t sequence = 0;
    bool ends_round = false;
    std::string bytes;

    friend bool operator==(const Block&, const Block&) = default;
  };

  struct Bundle {
    std::uint64_t id = 0;  // of its sender
    Pace pace = Pace::Collected;
    bool asks = false;  // the last one for the time being: confirm all
    std::vector<Block> blocks;

    friend bool operator==(const Bundle&, const Bundle&) = default;
  };

  struct Ack {
    bool is_confirmed = true;  // the head has its blocks; else: received, no more
    std::vector<std::uint64_t> ids;

    friend bool operator==(const Ack&, const Ack&) = default;
  };

  struct Actions {
    std::vector<std::pair<Position, Bundle>> bundles;
    std::vector<std::pair<Position, Ack>> acks;
    std::vector<Block> deliver;            // at the head: each block once
    std::vector<std::uint64_t> confirmed;  // own blocks
    std::vector<std::uint64_t> failed;     // own blocks: the head may not have them
  };

  // What the heartbeats say at the moment.
  struct Around {
    std::optional<Position> up;  // who answers this member's beats and is linked to the head
    Positions silent;            // below this member: not waited for
  };

  // `tree` must outlive it. Blocks and bundles have the numbers after
  // `last_number`, which must be above those of this member's earlier objects
  // in the same tree.
  Gather(const Tree& tree, Position self, const Limits& limits, std::uint64_t last_number = 0);

  // The number of the next block that is offered.
  [[nodiscard]] std::uint64_t next_sequence() const { return last_sequence_ + 1; }

  // Not at the head. The blocks get consecutive numbers, each has at most
  // most_block_bytes(). Each comes back in `confirmed` or `failed`, maybe at
  // once.
  Actions offer(std::vector<std::string> blocks, Pace pace, const Around& around, TimePoint now);

  [[nodiscard]] std::size_t most_block_bytes() const { return limits_.bundle_bytes - kBlockBytes; }

  // From a member below. One that claims blocks of others than those below its
  // sender is refused.
  Actions hear(Position from, const Bundle& bundle, const Around& around, TimePoint now);
  // From a member above. Unknown numbers are ignored.
  Actions hear(Position from, const Ack& ack, TimePoint now);
  Actions advance(const Around& around, TimePoint now);
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

  // Bundles that were refused so far.
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

  // Held at present; at most Limits::most_bytes.
  [[nodiscard]] std::size_t bytes_held() const { return bytes_; }

 private:
  using BatchKey = std::pair<Position, std::uint64_t>;  // sender and id

  struct Waiting {
    Block block;
    std::optional<BatchKey> owner;  // nullopt: this member
  };

  struct Hop {  // a bundle on its way
    Bundle bundle;
    std::vector<std::optional<BatchKey>> owners;  // [block]
    std::size_t bytes = 0;
    TimePoint due{}, give_up{};
  };

  using Hops = std::map<std::uint64_t, Hop>;

  [[nodiscard]] bool is_credible(Position from, const Bundle& bundle) const;
  void take(Position from, const Bundle& bundle, Actions& actions);
  void relay(Position from, const Bundle& bundle, const Around& around, TimePoint now);
  void wait(Waiting waiting, Pace pace, TimePoint now);
  void flush_if_due(const Around& around, TimePoint now, Actions& actions);
  [[nodiscard]] bool has_whole_round(const Around& around) const;
  void flush(Position to, TimePoint now, Actions& actions);
  void send(Position to, Hop hop, TimePoint now, Actions& actions);
  void close(Hops::iterator hop, bool is_confirmed, Actions& actions);
  void settle(const std::optional<BatchKey>& owner, std::uint64_t sequence, bool is_confirmed,
              Actions& actions);
  void emit_acks(Position to, Actions& actions);
  void remember(const BatchKey& key, std::size_t open);

  const Tree& tree_;
  Position self_;
  Limits limits_;
  PositionRange below_;
  std::uint32_t height_, depth_;  // levels below, and above
  std::uint64_t last_sequence_, last_id_;
  std::vector<Waiting> waiting_;
  Pace pace_ = Pace::Collected;  // of waiting_
  std::size_t waiting_bytes_ = 0;
  std::size_t rounds_ = 0;  // that end in waiting_
  TimePoint due_{};         // of waiting_
  Hops hops_;
  std::size_t bytes_ = 0;                    // in waiting_ and hops_
  std::map<BatchKey, std::size_t> batches_;  // blocks that are not confirmed; 0: it is over
  std::deque<BatchKey> order_;               // of batches_, oldest first
  std::map<Position, Ack> acks_;             // not sent yet
  std::vector<BlockWindow> windows_;         // the head's, by position
  std::uint64_t refused_ = 0;
};

}  // namespace score::gang
