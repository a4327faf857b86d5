// Decides which of the two replicas of a part of a volume serves it. This class is pure;
// docs/reference/pario.md has the rules, ADR 0094 gives the reasons.
//
// One replica leads: it runs all requests and sends changes to the other one, which follows. When
// one of them is lost the other one leads alone. Each such step has a number, the view, which both
// keep on disk. A replica that returns asks the other one before it serves any request.
#pragma once

#include <cstdint>
#include <vector>

namespace score::pario {

enum class ReplicaMode : std::uint8_t {
  Empty = 0,      // no data: new, or its directory was lost
  Stale = 1,      // the other one has changed without it: must be filled again
  Following = 2,  // has all acknowledged data
  Leading = 3,    // leads, and sends all changes to a follower
  Alone = 4,      // leads, without a follower
  Last = Alone,
};

struct ReplicaView {
  std::uint64_t number = 0;
  ReplicaMode mode = ReplicaMode::Empty;

  friend bool operator==(const ReplicaView&, const ReplicaView&) = default;
};

// Packs the view into one integer for messages and the store.
constexpr std::uint64_t pack(const ReplicaView& view) {
  return view.number << 8 | static_cast<std::uint64_t>(view.mode);
}

// Returns false if `packed` is not a view.
constexpr bool unpack(std::uint64_t packed, ReplicaView& view) {
  view.number = packed >> 8;
  view.mode = static_cast<ReplicaMode>(packed & 0xff);
  return (packed & 0xff) <= static_cast<std::uint64_t>(ReplicaMode::Last);
}

class Replica {
 public:
  enum class Action {
    Store,   // write view() to the disk before anything else is done
    Probe,   // ask the other one for its view, then call peer_is() or peer_is_gone()
    Repair,  // fill the other one, then call repaired() or follower_is_lost()
  };

  // Takes the view from the disk as `stored`. If both replicas are new, the one with `is_first`
  // leads.
  Replica(const ReplicaView& stored, bool is_first);

  // Returns true if requests may be served.
  bool serves() const { return is_sure_ && is_leader(); }

  // Returns true if changes must be sent to the other one.
  bool forwards() const { return view_.mode == ReplicaMode::Leading || is_repairing_; }

  // Returns true if a change that the leader sends in view `number` may be carried out.
  bool follows(std::uint64_t number);

  bool is_repairing() const { return is_repairing_; }

  const ReplicaView& view() const { return view_; }

  // --- Events ---
  void peer_is(const ReplicaView& peer);
  void peer_is_gone();
  // Call this when a client connects here although this replica does not serve.
  void asked();
  void follower_is_lost();
  // Call this when the other one has all data and is about to follow in view `number`. This replica
  // must have stored that view before, because the other one may take over from then on.
  void repaired(std::uint64_t number);
  // A leader begins to fill this replica.
  void begin_filling();
  // The leader has finished filling.
  void filled(std::uint64_t number);
  // Call this when this process was stopped for so long that the other one may have taken over.
  void stood_still();
  // Call this once per second.
  void tick();

  std::vector<Action> take_actions();

 private:
  bool is_leader() const {
    return view_.mode == ReplicaMode::Leading || view_.mode == ReplicaMode::Alone;
  }

  void lead_alone(std::uint64_t above);
  void set(ReplicaMode mode, std::uint64_t number);

  ReplicaView view_;
  bool is_first_;
  bool is_sure_ = false;  // a leader: the other one has not taken over; a follower: the leader has
                          // not continued without it
  bool has_restarted_;
  bool is_asked_ = false;
  bool is_repairing_ = false;
  std::vector<Action> actions_;
};

}  // namespace score::pario
