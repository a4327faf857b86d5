#pragma once
// Simulates two heads, their disks, and nodes as witnesses, in virtual time. It runs the real
// gang::Leadership and gang::Witness, with late or lost messages, partitions, crashes, reboots that
// lose memory, and clocks with different rates. Clients submit entries; a log is shipped as in
// scored/head/process: a snapshot, then each transaction.

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
  bool has_faults = true;  // crashes, reboots, partitions, lost and late messages
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

  [[nodiscard]] std::optional<std::size_t> in_charge() const;
  [[nodiscard]] bool has_current_follower() const;

  [[nodiscard]] TimePoint now() const { return events_.now(); }

  [[nodiscard]] const HeadsSeen& seen() const { return seen_; }

 private:
  using Log = std::vector<std::uint64_t>;  // entries

  struct Disk {
    Epoch term;
    gang::LogPosition position;
    Log log;
  };

  struct Head {
    Disk disk;
    double rate = 1;
    std::uint64_t life = 0;  // of the process; 0: not running
    std::uint64_t lives = 0;
    std::unique_ptr<gang::Leadership> leadership;
    TimePoint wakes{};
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
  void start(std::size_t head);
  void start_node(std::size_t node, bool forgets);
  void perform(std::size_t head, gang::LeadershipActions actions);
  void wake(std::size_t head);
  void ask(std::size_t head, const gang::LeaseRequest& request);
  void take_charge(std::size_t head, Epoch term);
  void settle(std::size_t head);
  void submit();
  void chance();
  void check();
  void cut(std::size_t a, std::size_t b, bool is_cut);

  [[nodiscard]] bool is_cut(std::size_t a, std::size_t b) const { return cuts_.contains({a, b}); }

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
  std::set<std::pair<std::size_t, std::size_t>> cuts_;  // 0, 1: heads; 2...: nodes; both orders
  std::set<std::uint64_t> acknowledged_;
  std::uint64_t next_entry_ = 1;
  std::uint64_t stream_ = 0;  // changes with each connection of the heads
  TimePoint last_ship_{};
  bool faults_ = false;
  HeadsSeen seen_;
};

}  // namespace score::sim
