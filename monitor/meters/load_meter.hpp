#pragma once
// LoadMeter computes rates from totals: the load of each task, and of each node's tasks together,
// between the last two samples of a node. CPU is per second of scheduled time: a gang that was
// frozen is not idle. It is pure.

#include "monitor/sampler/samples.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace score::monitor {

struct TrafficRate {  // per second of real time
  double sent_messages = 0, received_messages = 0;
  double sent_bytes = 0, received_bytes = 0;
};

struct TaskLoad {
  AttemptId attempt;
  Rank rank;
  std::int32_t pid = 0;
  TaskState state = TaskState::Blocked;
  double user = 0, system = 0;  // cores while scheduled; of the last time that it was scheduled
  double waited = 0;            // share of scheduled time in which it waited for a core
  double filled = 0;            // cores at idle priority per scheduled time, over about a second
  double scheduled = 0;         // share of the period
  double switches = 0;          // per second of scheduled time
  Bytes memory;
  std::uint32_t processes = 0;
  bool has_rates = false;         // scheduled between two samples, or there is nothing to measure
  std::optional<double> pm_wait;  // share of scheduled time, as sampled over about a second
  std::optional<TrafficRate> traffic;  // over about a second
};

struct NodeLoad {
  TimePoint taken{};
  double user = 0, system = 0;  // cores, of real time
  double filled = 0;            // part of these at idle priority
  std::optional<TrafficRate> traffic;
  std::vector<TaskLoad> tasks;  // by attempt, then rank
};

// A LoadMeter serves one node.
class LoadMeter {
 public:
  // Processes samples in the order in which they were taken; a sample that is older than the last
  // one is dropped.
  void feed(const NodeSample& sample);
  // Treats the next sample as the first one, after a lost connection or a time without viewers.
  void forget();

  // Returns the loads. Rates are 0 after the first sample.
  [[nodiscard]] const NodeLoad& load() const { return load_; }

  [[nodiscard]] bool has_sample() const { return has_sample_; }

 private:
  // Filling contains sums in seconds over about the last second.
  struct Filling {
    double used = 0, scheduled = 0;

    void add(double more_used, double more_scheduled, double real);
    [[nodiscard]] double share() const;
  };

  struct Kept {
    AttemptId attempt;
    TaskSample sample;
    double pm_wait = 0;
    double user = 0, system = 0, waited = 0, switches = 0;  // as shown last
    bool has_rates = false;                                 // as shown last
    std::optional<TrafficRate> traffic;                     // as shown last; empty: not known yet
    Filling filling{};
  };

  struct Totals {
    AttemptId attempt;
    Duration scheduled{0}, filled{0};
    bool fills = false;
  };

  struct Turns {  // of a gang, since the last sample
    Totals now;
    Duration scheduled{0}, filled{0};
    double own = 1;           // part of its tasks' processor time used in its own slices
    bool filled_too = false;  // the waiting of its tasks does not count for its own slices
  };

  static std::pair<AttemptId, Rank> key_of(const Kept& kept) {
    return {kept.attempt, kept.sample.rank};
  }

  void add_task(AttemptId attempt, const TaskSample& task, const Turns& turns);
  TaskLoad load_of(const TaskSample& now, Kept* before, const Turns& turns);
  Kept* find(AttemptId attempt, Rank rank);
  [[nodiscard]] Turns turns_of(const GangSample& gang);
  [[nodiscard]] double own_part(const GangSample& gang, Duration filled);

  bool has_sample_ = false;
  // Totals of the last sample, and of the next one; both are kept to reuse their memory.
  std::vector<Totals> totals_, new_totals_;
  std::vector<Kept> last_, new_;  // by attempt, then rank
  std::size_t next_ = 0;          // in last_: probable place of the next task
  Duration period_{0};
  NodeLoad load_;
};

}  // namespace score::monitor
