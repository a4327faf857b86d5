#pragma once
// Simulates a whole cluster in one thread from one seed: the real Cluster, real NodeAgents, a disk
// for the head, users, operators and faults. Throws Broken when an invariant is violated.

#include "gang/head/cluster.hpp"
#include "tests/sim/events.hpp"
#include "tests/sim/link.hpp"
#include "tests/sim/sim_node.hpp"

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace score::sim {

using base::JobId;
using base::JobState;

struct Options {
  std::uint64_t seed = 1;
  std::uint32_t nodes = 12;
  std::uint64_t steps = 20'000;  // events before everything is healed
  bool faults = true;
  bool slow_messages = true;  // some messages are slow even without faults
  bool barriers = false;      // barrier mode: gangs meet at boundaries
  bool crowded = false;  // every job requests at least half of the nodes, and most sleep at times
  bool hangs = false;    // some jobs never begin on one of their nodes
  gang::Placement placement = gang::Placement::Matrix;
  Duration user_pause = std::chrono::milliseconds{25};  // mean time between users' requests
};

struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Contains the events that a run has observed, because a run that observed nothing proves nothing.
struct Seen {
  std::map<JobState, std::uint64_t> ends;
  std::uint64_t events = 0, epochs = 0, gangs_compared = 0, cores_compared = 0, clocks_compared = 0;
  std::uint64_t units_compared = 0;  // of generic resources
  std::uint64_t head_restarts = 0, cuts = 0, node_crashes = 0, daemon_restarts = 0, duplicates = 0;
  std::uint64_t late_timetables = 0, stale_reports = 0;
  std::uint64_t idle_left = 0, idle_returned = 0, early_yields = 0, idle_compared = 0;
  std::uint64_t deadlocks_killed = 0, lost_reports = 0, fake_wakes = 0;
  std::uint64_t launches_compared = 0, hangs_ended = 0;
  std::uint64_t high_compared = 0;       // jobs on cores of a busy job of queue high
  std::uint64_t kept_rows_compared = 0;  // jobs without a short limit that opened a row
  std::uint64_t urgent_beyond = 0;       // urgent jobs that were placed beyond the slots
  std::uint64_t reserved_compared = 0;   // jobs on nodes that were reserved
  std::uint64_t left_reserved = 0;       // jobs that had to leave when a reservation began
  std::uint64_t met = 0, unmet = 0;
  Duration worst_gang_skew{0};
};

class World {
 public:
  explicit World(Options options);
  ~World();

  // Runs everything: faults, healing, and the final comparison.
  Seen run();

 private:
  struct Site {  // a node and its connection
    std::unique_ptr<SimNode> node;
    std::unique_ptr<Link> link;
    bool reachable = true;
    std::deque<Upward> said;     // for duplicates
    std::deque<Downward> heard;  // for duplicates
  };

  struct Stored {  // on the head's disk
    gang::JobView view;
    bool acknowledged = true;
  };

  // These are in world_head.cpp.
  [[nodiscard]] TimePoint head_now() const { return events_.now() + head_offset_; }

  void head_start();
  void head_crash();
  void head_does(const gang::Actions& actions);
  void head_does(const base::Result<gang::Actions>& actions);
  void head_hears(std::size_t site, const Upward& message);
  void head_arm();
  void store(JobId job);
  [[nodiscard]] gang::RecoveredJob recovered(const Stored& stored) const;
  [[nodiscard]] std::vector<gang::Reservation> reservations() const;

  // These are in world_chance.cpp.
  void user_acts();
  void submit();
  void act_on_some_job();
  void operate();
  void reserve();
  void misfortune();
  void partition();
  void duplicate();
  base::ResourceRequest some_request();
  void add_units(base::ResourceRequest& request, std::uint64_t number) const;
  base::ResourceRequest wide_request();
  Behaviour some_behaviour();

  // These are in world_check.cpp.
  void check_event();
  void check_node(std::size_t site);
  void check_units(std::size_t site);
  void check_scratch(std::size_t site) const;
  void check_gang(base::AttemptId attempt, base::NodeId changed);
  void check_clock(std::size_t site);
  void check_healed();
  void check_idle(JobId job);
  void check_launch(JobId job);
  void check_high(JobId job);
  void check_placed(const gang::JobView& before, const gang::JobView& view);
  void check_kept_row(const gang::JobView& placed);
  void check_reserved();
  void count_idle();
  [[nodiscard]] std::string describe(base::NodeId id, base::AttemptId attempt) const;
  [[noreturn]] void broken(const std::string& what) const;

  // These are in world.cpp.
  void build_site(std::uint32_t index);
  void keep_connected(std::size_t site);
  void keep_beating(std::size_t site);
  void keep_checking_idle();
  void every(Duration mean, void (World::*what)());
  void heal();
  void step_until(TimePoint end);

  Options options_;
  Events events_;
  Chance chance_;
  std::vector<Site> sites_;
  std::optional<gang::Cluster> head_;
  Duration head_offset_{0};
  std::uint64_t head_number_ = 0;  // incarnation
  std::uint64_t head_timer_ = 0;
  Duration quantum_ = std::chrono::milliseconds{100};
  std::uint32_t slots_ = 8;
  std::map<JobId, Stored> disk_;

  struct Reserved {  // on the head's disk too; in simulated time
    gang::Reservation reservation;
    TimePoint start{}, end{};
  };

  std::vector<Reserved> reserved_;
  std::uint64_t last_reservation_ = 0;
  std::map<JobId, Behaviour> behaviours_;
  std::uint64_t last_job_ = 0;
  bool healing_ = false;
  bool head_is_doomed_ = false;  // it crashes before its next action

  std::set<std::size_t> changed_;  // sites to compare after this event

  struct Uneven {
    TimePoint since{};
    Duration error{0};  // the worst error of its nodes' clocks in the meantime
  };

  std::map<base::AttemptId, Uneven> uneven_;  // attempts that run on some of their nodes only
  std::map<JobId, TimePoint> kept_out_since_, lingers_since_, launching_since_, not_begun_since_;
  std::map<JobId, TimePoint> not_displaced_since_;
  std::map<JobId, Duration> hangs_from_;  // scheduled time at the first check
  Seen seen_;
};

}  // namespace score::sim
