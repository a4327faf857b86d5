// The sampler of a node: reads its tasks while the head asks for samples, and always counts its
// switches. Without a request nothing is opened or read.
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
  // All outlive it; tasks is stopped first.
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

  // The head's request; holds until the next one or stop().
  void watch(const wire::WatchNode& message);
  // The head is gone.
  void stop();
  // Tasks began or ended: viewers do not wait a second for that.
  void tasks_changed();

  // Samples are requested regularly.
  [[nodiscard]] bool is_watched() const { return period_ > Duration{0}; }

  // Counts the switches since the last call if one of them was late or many wait to be counted.
  // Once a heartbeat, so that the trace does not run over.
  void look_for_late();

  struct Late {
    Duration late{0};
    SwitchRecord record;
  };

  using LateReports = monitor::LateReports<Late>;

  // Late switches that look_for_late() found, for the log: at once, then one per kLatePause.
  [[nodiscard]] std::optional<LateReports::Report> take_late() {
    return late_.take(parts_.clock.now());
  }

  // Without a viewer the head learns from this what attempts have filled since the last call. Once
  // a heartbeat, in the same turn: it is sent with it.
  void report_filled();

  // Of the switches, the jobs' CPU and traffic so far.
  [[nodiscard]] monitor::NodeTotals totals();

 private:
  asio::awaitable<void> run(std::uint64_t generation);
  void keep_up();

  struct Extent {  // what it has had
    Duration ran{0}, filled{0};

    friend bool operator==(const Extent&, const Extent&) = default;
  };

  struct Watch {
    monitor::TaskWatch tasks;
    std::vector<TaskTrack> tracks;    // [task]
    std::optional<Extent> frozen_at;  // when it was read frozen; none: read it
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
  Duration together_ = monitor::kTogether;  // samples travel, this often
  std::uint64_t generation_ = 0;            // of the request
  TimePoint next_look_up_{};
  std::map<AttemptId, Watch> watches_;
  std::shared_ptr<Snapshots> snapshots_;  // of watches_; null: none
  std::vector<TaskTotals> totals_;        // of its tasks, in its order, at the last full sample
  TimePoint totals_sent_{}, peers_sent_{};
  Duration reported_filled_{0};  // of all attempts, by report_filled()
  bool wants_peers_ = false;
  wire::NodeSample sample_;      // the last one: its memory is used again
  std::string bytes_;            // ... and those that it was sent as
  std::uint64_t seen_ = 0;       // of the switcher's trace
  std::uint64_t late_seen_ = 0;  // of the switcher's counter
  std::uint64_t lost_ = 0;
  std::array<monitor::TimeHistogram, monitor::kSwitchPhases> phases_{};
  LateReports late_;
  std::vector<SwitchRecord> pending_;  // for the next sample
  TimePoint sent_until_{};             // of switches that were sent without a viewer
  monitor::CgroupCpu cpu_;             // of the jobs, as it was read last
  UniqueFd usage_file_;
  std::map<AttemptId, monitor::Traffic> traffic_;
  monitor::Traffic ended_traffic_;  // of attempts that are gone, as they were seen last
};

}  // namespace score::node
