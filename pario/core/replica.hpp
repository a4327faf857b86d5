// Which of the two replicas of a part of a volume serves it. Pure; docs/reference/pario.md has the
// rules, ADR 0094 argues.
//
// One replica leads: it runs all requests and gives changes to the other one, which follows. When
// one of them is lost the other one leads alone; each such step has a number, the view, that both
// keep on disk. A replica that comes back asks the other one before it serves anything.
#pragma once

#include <cstdint>
#include <vector>

namespace score::pario {

enum class ReplicaMode : std::uint8_t {
  Empty = 0,      // nothing here: new, or its directory was lost
  Stale = 1,      // the other one has changed without it: to be filled again
  Following = 2,  // has everything that was acknowledged
  Leading = 3,    // and gives it to a follower
  Alone = 4,      // leads, without a follower
  Last = Alone,
};

struct ReplicaView {
  std::uint64_t number = 0;
  ReplicaMode mode = ReplicaMode::Empty;

  friend bool operator==(const ReplicaView&, const ReplicaView&) = default;
};

// As one number, for messages and the store.
constexpr std::uint64_t pack(const ReplicaView& view) {
  return view.number << 8 | static_cast<std::uint64_t>(view.mode);
}

// False: not a view.
constexpr bool unpack(std::uint64_t packed, ReplicaView& view) {
  view.number = packed >> 8;
  view.mode = static_cast<ReplicaMode>(packed & 0xff);
  return (packed & 0xff) <= static_cast<std::uint64_t>(ReplicaMode::Last);
}

class Replica {
 public:
  enum class Action {
    Store,   // view() on the disk, before anything else is done
    Probe,   // ask the other one for its view: then peer_is() or peer_is_gone()
    Repair,  // fill the other one; then repaired() or follower_is_lost()
  };

  // `stored`: what was on the disk. `is_first`: of two new ones this one leads.
  Replica(const ReplicaView& stored, bool is_first);

  // May requests be served?
  bool serves() const { return is_sure_ && is_leader(); }

  // Must changes be given to the other one?
  bool forwards() const { return view_.mode == ReplicaMode::Leading || is_repairing_; }

  // A change from the leader, in its view: may it be carried out?
  bool follows(std::uint64_t number);

  bool is_repairing() const { return is_repairing_; }

  const ReplicaView& view() const { return view_; }

  // --- Events ---
  void peer_is(const ReplicaView& peer);
  void peer_is_gone();
  // A client came here although this one does not serve.
  void asked();
  void follower_is_lost();
  // The other one has everything, and is about to follow in view `number`: this one must have
  // stored that before, as the other one may take over from then on.
  void repaired(std::uint64_t number);
  // A leader begins to fill this one.
  void begin_filling();
  // The end of that.
  void filled(std::uint64_t number);
  // This process stood still for so long that the other one may have taken over.
  void stood_still();
  // Once per second.
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
  bool is_sure_ = false;  // a leader: that the other one has not taken over; a follower: that
                          // the leader has not gone on without it
  bool has_restarted_;
  bool is_asked_ = false;
  bool is_repairing_ = false;
  std::vector<Action> actions_;
};

}  // namespace score::pario
