#pragma once
// Brings each member its part of something new, down the tree: the head's timetables. The parts are
// opaque. Each hop is acknowledged and repeated; a member confirms upwards when everything below it
// is confirmed, and names the members that could not be reached, so that the head sends those their
// part over TLS. A part may arrive twice, and after a newer one.

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

class TimetableRelay {
 public:
  struct Limits {
    std::size_t bundle_bytes = 1'200;  // of bodies and ranges, so that a bundle fits one datagram
    Duration retry = std::chrono::milliseconds{1};  // then twice as long, each time
    std::uint32_t tries = 5;
    std::size_t batches = 64;  // remembered, so that a repeated bundle is not relayed twice
  };

  struct Part {
    Positions to;
    std::string body;
  };

  struct Bundle {
    std::uint64_t id = 0;  // of its sender
    std::vector<Part> parts;
  };

  struct Ack {
    std::uint64_t id = 0;
    bool is_confirmed = false;  // all below have it, except the missing; else: received, no more
    Positions missing;
  };

  struct Actions {
    std::vector<std::string> deliver;  // parts of this member
    std::vector<std::pair<Position, Bundle>> bundles;
    std::vector<std::pair<Position, Ack>> acks;
    // At the head: these members may not have their parts of publication `first`.
    std::vector<std::pair<std::uint32_t, Positions>> missing;
    // At the head: publications that are over, also those with missing members.
    std::vector<std::uint32_t> ended;
  };

  // `tree` must outlive it. Bundles have the ids after `last_id`, which must be above those of
  // this member's earlier relays: members below may remember these.
  TimetableRelay(const Tree& tree, Position self, Limits limits, std::uint64_t last_id = 0);

  // At the head: begins a publication with this number. Members in `silent` are bypassed and are
  // missing at once.
  Actions publish(std::uint32_t number, const std::vector<Part>& parts, const Positions& silent,
                  TimePoint now);
  // A bundle from a member above. Again: the ack is repeated.
  Actions hear(Position from, const Bundle& bundle, const Positions& silent, TimePoint now);
  // Unknown ones are ignored.
  Actions hear(Position from, const Ack& ack, TimePoint now);
  Actions advance(TimePoint now);
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

 private:
  using BatchKey = std::pair<Position, std::uint64_t>;  // sender and id; at the head itself

  struct Batch {
    std::size_t open = 0;  // bundles that are not confirmed
    Positions missing;
    bool is_over = false;
  };

  struct Hop {  // a bundle on its way
    Position to = 0;
    Bundle bundle;
    BatchKey batch;
    std::uint32_t tries = 1;
    bool is_received = false;
    TimePoint due{};
  };

  void begin(const BatchKey& key, const std::vector<Part>& parts, const Positions& silent,
             TimePoint now, Actions& actions);
  void send_down(const BatchKey& key, Position child, const std::vector<Part>& parts, TimePoint now,
                 Actions& actions);
  void send_bundle(const BatchKey& key, Position child, std::vector<Part> parts, TimePoint now,
                   Actions& actions);
  void close(std::map<std::uint64_t, Hop>::iterator hop, const Positions& missing,
             Actions& actions);
  void end_if_complete(const BatchKey& key, Actions& actions);
  void forget_old(Actions& actions);

  const Tree& tree_;
  Position self_;
  Limits limits_;
  std::uint64_t last_id_;
  std::map<std::uint64_t, Hop> hops_;
  std::map<BatchKey, Batch> batches_;
  std::deque<BatchKey> order_;  // of batches_, oldest first
};

}  // namespace score::gang
