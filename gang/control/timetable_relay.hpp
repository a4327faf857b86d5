#pragma once
// TimetableRelay sends each member its part of a publication down the tree; the publications are
// the head's timetables. The parts are opaque. Each hop is acknowledged and repeated. A member
// confirms upwards when everything below it is confirmed, and names the members that it could not
// reach, so that the head sends them their part over TLS. A part may arrive twice, and after a
// newer one.
//
// No member need be trusted for the others. The head tags each part for each receiver, and a
// receiver that accepts its part proves that by a number that only itself and the head can compute.
// The members on the way combine the proofs of all below them by exclusive or; the head compares
// the result with what it expects, and otherwise regards all of that bundle as missing.

#include "base/time.hpp"
#include "gang/control/tree.hpp"

#include <cstdint>
#include <deque>
#include <functional>
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
    std::size_t bundle_bytes = 1'200;  // of bodies and ranges: a bundle must fit into a datagram
    Duration retry = std::chrono::milliseconds{1};  // doubles with each try
    std::uint32_t tries = 5;
    std::size_t batches = 128;  // remembered, so that a repeated bundle is not relayed twice
  };

  struct Part {
    Positions to;
    std::string body;
    std::vector<std::uint64_t> tags{};  // of the positions of `to`, ascending; empty: none
  };

  // Checks and makes what the head and a receiver prove to each other.
  struct Seals {
    // Returns the proof for the head that this member has its part; nullopt if the part is not
    // genuine. `tag` is nullopt if it has none.
    std::function<std::optional<std::uint64_t>(const std::string& body,
                                               std::optional<std::uint64_t> tag)>
        accept;
    // Returns the proof that the member is to give for this body. Only the head calls it.
    std::function<std::uint64_t(Position, const std::string& body)> expected;
  };

  struct Bundle {
    std::uint64_t id = 0;  // assigned by the sender of the bundle
    std::vector<Part> parts;
  };

  struct Ack {
    std::uint64_t id = 0;
    bool is_confirmed = false;  // all members below have it, except `missing`; false: received
    Positions missing;
    std::uint64_t proof = 0;  // of all that are confirmed, combined
  };

  struct Actions {
    std::vector<std::string> deliver;  // parts for this member
    std::vector<std::pair<Position, Bundle>> bundles;
    std::vector<std::pair<Position, Ack>> acks;
    // These members may not have their parts of publication `first`. Only the head gets this.
    std::vector<std::pair<std::uint32_t, Positions>> missing;
    // These publications have ended, including those with missing members. Only the head gets this.
    std::vector<std::uint32_t> ended;
  };

  // `tree` must outlive the relay. Bundles get ids above `last_id`, which must exceed the ids of
  // this member's earlier relays: members below may remember those.
  TimetableRelay(const Tree& tree, Position self, Limits limits, Seals seals,
                 std::uint64_t last_id = 0);

  // Begins a publication with this number; only the head calls it. Members in `silent` are bypassed
  // and count as missing at once.
  Actions publish(std::uint32_t number, const std::vector<Part>& parts, const Positions& silent,
                  TimePoint now);
  // Takes a bundle from a member above. For a known bundle it repeats only the ack.
  Actions hear(Position from, const Bundle& bundle, const Positions& silent, TimePoint now);
  // Takes an ack from a member below. An unknown one is ignored.
  Actions hear(Position from, const Ack& ack, TimePoint now);
  Actions advance(TimePoint now);
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

 private:
  using BatchKey = std::pair<Position, std::uint64_t>;  // sender (at the head: itself) and id

  struct Batch {
    std::size_t open = 0;  // bundles that are not confirmed
    Positions missing;
    std::uint64_t proof = 0;
    bool is_over = false;
  };

  struct Hop {  // one bundle in flight
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
  void take_own(Batch& batch, const std::vector<Part>& parts, Actions& actions) const;
  [[nodiscard]] bool is_proven(const Bundle& bundle, const Ack& ack) const;
  [[nodiscard]] Ack confirmation(std::uint64_t id, const Batch& batch) const;
  void close(std::map<std::uint64_t, Hop>::iterator hop, const Ack& ack, Actions& actions);
  void end_if_complete(const BatchKey& key, Actions& actions);
  void forget_old(Actions& actions);

  const Tree& tree_;
  Position self_;
  Limits limits_;
  Seals seals_;
  std::uint64_t last_id_;
  std::map<std::uint64_t, Hop> hops_;
  std::map<BatchKey, Batch> batches_;
  std::deque<BatchKey> order_;  // keys of batches_, oldest first
};

}  // namespace score::gang
