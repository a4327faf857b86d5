#pragma once
// Simulates two heads, their disks, and nodes as witnesses, in virtual time. It runs the real
// gang::Leadership and gang::Witness, with late or lost messages, partitions in one direction,
// crashes, reboots that lose memory, older copies of disks, stopped heads and clocks, a lying
// witness among five or more, and clocks with different rates. Clients submit entries; a log is
// shipped as in scored/head/process: a snapshot, then each transaction.

#include "gang/leadership/leadership.hpp"
#include "tests/sim/events.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace score::sim {

struct HeadsOptions {
  std::uint64_t seed = 1;
  std::size_t nodes = 5;
  bool has_faults = true;  // all that HeadsSeen counts, and lost and late messages
};

struct HeadsSeen {
  std::uint64_t submitted = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t taken_charge = 0;
  std::uint64_t stood_down = 0;
  std::uint64_t alone = 0;  // acknowledged without a current follower
  std::uint64_t snapshots = 0;
  std::uint64_t crashes = 0;
  std::uint64_t reboots = 0;
  std::uint64_t partitions = 0;
  std::uint64_t old_disks = 0;  // a head started on an older copy of its disk
  std::uint64_t stops = 0;      // of a head, with or without its clock
  std::uint64_t lies = 0;       // answers of a witness that does not follow the protocol
  // Lost, after an older copy of a disk came back, because the head in charge had no quorum of the
  // witnesses when it acknowledged them or when it was elected.
  std::uint64_t unwitnessed = 0;

  [[nodiscard]] std::uint64_t faults() const {
    return crashes + reboots + partitions + old_disks + stops + lies;
  }
};

class HeadsWorld {
 public:
  explicit HeadsWorld(const HeadsOptions& options);

  // Throws std::runtime_error if two heads are active, or if one becomes active without an
  // acknowledged entry.
  void run_for(Duration time);
  // Starts and connects everything from now on.
  void heal();

  // Ends the process at once; only restart() starts it again.
  void crash(std::size_t head);
  void restart(std::size_t head);

  // Starts the head with the longer log with --recover. Returns false if it does not lack changes.
  bool recover();

  [[nodiscard]] std::optional<std::size_t> in_charge() const;
  [[nodiscard]] bool has_current_follower() const;

  [[nodiscard]] TimePoint now() const { return events_.now(); }

  [[nodiscard]] const HeadsSeen& seen() const { return seen_; }

 private:
  using Log = std::vector<std::uint64_t>;  // entries

  struct Disk {
    gang::StoredTerms terms;
    gang::LogPosition position;
    Log log;
  };

  struct Head {
    Disk disk;
    Disk copy;  // an earlier state of it
    double rate = 1;
    Duration behind{};                    // what its clock has lost while it stood still
    std::optional<TimePoint> stopped_at;  // neither runs nor receives since then
    bool has_stopped_clock = false;
    TimePoint continued{};   // last time
    std::uint64_t life = 0;  // of the process; 0: not running
    std::uint64_t lives = 0;
    std::unique_ptr<gang::Leadership> leadership;
    Epoch follows;  // the term of the leader that it has heard in this life
    // These are used while it is the active head.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> waiting;  // sequence, entry
    bool opened = false;                                           // its first transaction is done
    std::optional<std::uint64_t> ships_from;  // ships entries above this one to the follower
  };

  struct Node {
    gang::Witness::Memory memory;
    double rate = 1;
    std::unique_ptr<gang::Witness> witness;  // null: down
    std::uint64_t life = 0;
  };

  [[nodiscard]] TimePoint local(double rate) const;
  [[nodiscard]] TimePoint local(const Head& head) const;

  [[nodiscard]] bool is_up(const Head& head) const { return head.life != 0 && !head.stopped_at; }

  void start(std::size_t head, gang::Override override_by = gang::Override::None);
  void start_node(std::size_t node, bool forgets);
  void perform(std::size_t head, gang::LeadershipActions actions);
  void wake(std::size_t head);
  void ask(std::size_t head, const gang::AskWitnesses& asks);
  void take_charge(std::size_t head, Epoch term);
  void check_complete(std::size_t head, bool is_witnessed);
  void stop(std::size_t head);
  void go_on(std::size_t head);
  [[nodiscard]] bool has_everything(const Head& head) const;
  gang::LeaseReply answer(std::size_t node, const gang::LeaseRequest& request);
  void chance_of_heads();
  void chance_of_nodes();
  void chance_of_links();
  void settle(std::size_t head);
  void submit();
  void chance();
  void check();
  void cut(std::size_t from, std::size_t to);

  [[nodiscard]] bool is_cut(std::size_t from, std::size_t to) const {
    return cuts_.contains({from, to});
  }

  // The log needs a connection, which breaks if either direction does.
  [[nodiscard]] bool has_stream() const { return !is_cut(0, 1) && !is_cut(1, 0); }

  template <typename What>
  void send(std::size_t from, std::size_t to, What what);

  // Starts the stream from the active head to its follower.
  void follow();
  void end_stream();
  void ship(std::size_t from, Disk state, bool is_snapshot);
  void store(std::size_t at, Disk state, std::uint64_t stream);

  HeadsOptions options_;
  Chance chance_;
  Events events_;
  std::array<Head, 2> heads_;
  std::vector<Node> nodes_;
  std::set<std::pair<std::size_t, std::size_t>> cuts_;  // from, to; 0, 1: heads; 2...: nodes
  std::set<std::uint64_t> acknowledged_;
  std::set<std::uint64_t> unwitnessed_;
  std::vector<gang::LogMark> shown_;  // marks that the lying witness was sent
  std::uint64_t next_entry_ = 1;
  std::uint64_t stream_ = 0;  // changes with each connection of the heads
  TimePoint last_ship_{};
  bool faults_ = false;
  HeadsSeen seen_;
};

}  // namespace score::sim
