// Takes snapshots of the tasks between two samples. The switcher's thread does it where it is awake
// anyway, with one system call per task that ran. A wake-up of the main thread costs much more
// (docs/adr/0032), so the main thread fetches the snapshots once or twice a second.
//
// The main thread makes the object and chooses the tasks; a change needs a new object.
#pragma once

#include "monitor/sampler/samples.hpp"
#include "scored/node/channel/job_contexts.hpp"
#include "scored/node/switch/switch_observer.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <sys/types.h>
#include <vector>

namespace score::node {

// Reads PM's context behind the descriptor. Returns none if it is not a context or its owner has
// damaged it.
std::optional<monitor::PmReading> read_context(const UniqueFd& context);

struct TaskSnapshot {
  Duration used{0};  // processor time of its living processes
  std::optional<monitor::PmReading> pm;
};

struct GangSnapshot {
  bool is_there = false;  // false: the attempt is gone and the other values are meaningless
  Duration ran{0};        // as Switcher::RunTime
  bool runs = false;
  bool has_turn = false;
  bool fills = false;
  Duration filled{0};  // processor time at idle priority, without the current time of filling
};

struct Snapshot {
  TimePoint taken{};
  std::vector<GangSnapshot> gangs;  // in the order they were given
  std::vector<TaskSnapshot> tasks;  // all of the first gang, then all of the second, ...
};

class Snapshots final : public SwitchObserver {
 public:
  // Up to this many snapshots are kept until they are fetched; further ones are dropped.
  static constexpr std::size_t kMostKept = 32;

  struct Gang {
    AttemptId attempt;
    std::vector<std::vector<pid_t>> processes;   // [task]
    std::shared_ptr<const ContextSet> contexts;  // [task], or null

    friend bool operator==(const Gang&, const Gang&) = default;
  };

  Snapshots(Duration period, std::vector<Gang> gangs);

  // Takes one snapshot per period, preferably at a boundary.
  std::optional<TimePoint> observe(TimePoint now, std::optional<TimePoint> boundary,
                                   Entries entries) override;

  // Calls `each` for the snapshots since the last call, oldest first. Thread: the main one.
  template <class Each>
  void fetch(Each&& each) {
    const std::uint32_t end = written_.load(std::memory_order_acquire);
    for (std::uint32_t i = fetched_.load(std::memory_order_relaxed); i != end; ++i) {
      each(kept_[i % kMostKept]);
    }
    fetched_.store(end, std::memory_order_release);
  }

  // Returns the processor time of all tasks now, as TaskSnapshot::used and in its order. Thread:
  // any.
  [[nodiscard]] std::vector<Duration> used() const;

  [[nodiscard]] const std::vector<Gang>& gangs() const { return gangs_; }

  [[nodiscard]] Duration period() const { return period_; }

 private:
  [[nodiscard]] bool is_time(TimePoint now, std::optional<TimePoint> boundary) const;
  void record_all(Entries entries, TimePoint now);
  void record_tasks(const Gang& gang, std::size_t first);

  const Duration period_;
  const std::vector<Gang> gangs_;
  TimePoint next_{};            // for the switcher's thread
  Snapshot last_;               // ... too; still holds the values of a gang that has not run since
  std::vector<Snapshot> kept_;  // [kMostKept]
  std::atomic<std::uint32_t> written_{0}, fetched_{0};  // totals
};

}  // namespace score::node
