// Samples the tasks of a node while the head asks for it, and always counts the node's switches.
// Without a request nothing is opened or read.
#pragma once

#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "gang/node/node_agent.hpp"
#include "monitor/meters/late_reports.hpp"
#include "monitor/sampler/samples.hpp"
#include "monitor/sampler/task_watch.hpp"
#include "proto/node.pb.h"
#include "scored/node/attempts/attempts.hpp"
#include "scored/node/link/head_link.hpp"
#include "scored/node/network/networks.hpp"
#include "scored/node/observe/snapshots.hpp"
#include "scored/node/observe/task_track.hpp"
#include "scored/node/switch/switcher.hpp"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace score::node {

class Sampling {
 public:
  // All must outlive it; `tasks` is stopped first.
  struct Parts {
    Clock& clock;
    TaskGroup& tasks;
    HeadLink& head;
    const Attempts& attempts;
    Switcher& switcher;
    const gang::NodeAgent& agent;
    const JobCgroups* cgroups;  // null: process trees
    const Networks& networks;
  };

  explicit Sampling(Parts parts);

  // Handles the head's request; it holds until the next one or stop().
  void watch(const wire::WatchNode& message);
  // Must be called when the connection to the head is lost.
  void stop();
  // Must be called when tasks have begun or ended, so that viewers do not wait a second for that.
  void tasks_changed();

  // Returns true if samples are requested regularly.
  [[nodiscard]] bool is_watched() const { return period_ > Duration{0}; }

  // Counts the switches since the last call if one of them was late or many wait to be counted.
  // Must be called once per heartbeat, so that the trace does not overflow.
  void find_late_switches();

  struct Late {
    Duration late{0};
    SwitchRecord record;
  };

  using LateReports = monitor::LateReports<Late>;

  // Returns the late switches that find_late_switches() has found, for the log: at once, then one
  // per kLatePause.
  [[nodiscard]] std::optional<LateReports::Report> take_late() {
    return late_.take(parts_.clock.now());
  }

  // Sends the head what attempts have filled since the last call, if there is no viewer. Must be
  // called once per heartbeat, in the same turn, so that both are sent together.
  void report_filled();

  // Returns the totals so far of the switches and of the jobs' CPU time and traffic.
  [[nodiscard]] monitor::NodeTotals totals();

 private:
  asio::awaitable<void> run(std::uint64_t generation);
  void keep_up();

  struct Extent {  // time that an attempt has had
    Duration ran{0}, filled{0};

    friend bool operator==(const Extent&, const Extent&) = default;
  };

  struct Watch {
    monitor::TaskWatch tasks;
    std::vector<TaskTrack> tracks;    // [task]
    std::optional<Extent> frozen_at;  // its extent when it was read frozen; none: read it
  };

  [[nodiscard]] TimePoint next_sample(TimePoint now) const;
  void send_sample(bool with_tasks);
  void begin_sample(TimePoint taken);
  void send_it();
  void add_switches(TimePoint until);
  void add_last_switches(TimePoint now);
  void keep_watching(TimePoint now);
  void look_up();
  void choose_snapshots();
  void note_totals(TimePoint now);
  void send_snapshots(TimePoint now);
  void fill_snapshot(const Snapshot& snapshot);
  monitor::FindProcesses finder(const Attempts::RunningTasks& tasks) const;
  void read(AttemptId attempt, Watch& watch);
  void add_contexts(AttemptId attempt, std::vector<monitor::TaskSample>& tasks) const;
  void count_traffic();
  void refresh_usage();
  [[nodiscard]] monitor::NodeTotals counts() const;
  void read_all();
  void fill_gangs(TimePoint now);
  void fill_peers(TimePoint now);

  Parts parts_;
  Duration period_{0};
  Duration together_ = monitor::kTogether;  // period in which samples are sent
  std::uint64_t generation_ = 0;            // counts requests
  TimePoint next_look_up_{};
  std::map<AttemptId, Watch> watches_;
  std::shared_ptr<Snapshots> snapshots_;  // of watches_; null: none
  std::vector<TaskTotals> totals_;        // of its tasks, in its order, at the last full sample
  TimePoint totals_sent_{}, peers_sent_{};
  Duration reported_filled_{0};  // sum of all attempts, by report_filled()
  bool wants_peers_ = false;
  wire::NodeSample sample_;      // the last one; its memory is reused
  std::string bytes_;            // the last one as it was sent
  std::uint64_t seen_ = 0;       // position in the switcher's trace
  std::uint64_t late_seen_ = 0;  // last value of the switcher's counter
  std::uint64_t lost_ = 0;
  std::array<monitor::TimeHistogram, monitor::kSwitchPhases> phases_{};
  LateReports late_;
  std::vector<SwitchRecord> pending_;  // for the next sample
  TimePoint sent_until_{};             // latest switch that was sent without a viewer
  monitor::CgroupCpu cpu_;             // of the jobs, at the last reading
  UniqueFd usage_file_;
  std::map<AttemptId, monitor::Traffic> traffic_;
  monitor::Traffic ended_traffic_;  // of attempts that are gone, at their last reading
};

}  // namespace score::node
