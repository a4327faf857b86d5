// Looks at tasks between two samples, by the switcher's thread where it is awake anyway: a system
// call of a microsecond a task that ran. A wake-up of the main thread costs twenty times that
// (docs/adr/0032), so it fetches what was seen once or twice a second.
//
// Made by the main thread, which says whom to look at; a change makes another one. The switcher's
// thread neither allocates nor waits here.
#pragma once

#include "monitor/sampler/samples.hpp"
#include "scored/node/network/job_contexts.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <sys/types.h>
#include <vector>

namespace score::node {

struct SwitchSlot;

// Of PM's context behind the descriptor; none: it is no context, or one that its owner broke.
std::optional<monitor::PmReading> read_context(const UniqueFd& context);

struct TaskGlance {
  Duration used{0};  // processor time of those of its processes that live
  std::optional<monitor::PmReading> pm;
};

struct GangGlance {
  bool is_there = false;  // false: the attempt is gone, the rest says nothing
  Duration ran{0};        // as Switcher::RunTime
  bool runs = false;
  bool has_turn = false;
};

struct Glance {
  TimePoint taken{};
  std::vector<GangGlance> gangs;  // in the order they were given
  std::vector<TaskGlance> tasks;  // all of the first gang, then all of the second ...
};

class Glances {
 public:
  // Until they are fetched; what more is seen is dropped.
  static constexpr std::size_t kMostKept = 32;

  struct Gang {
    AttemptId attempt;
    std::vector<std::vector<pid_t>> processes;   // [task]
    std::shared_ptr<const ContextSet> contexts;  // [task], or null

    friend bool operator==(const Gang&, const Gang&) = default;
  };

  using Slots = std::span<const std::shared_ptr<SwitchSlot>>;

  Glances(Duration period, std::vector<Gang> gangs);
  Glances(const Glances&) = delete;
  Glances& operator=(const Glances&) = delete;

  // Looks if it is time: each period, but rather where somebody switches, at `boundary`, than at a
  // moment of its own. Says when it must be called again, besides at the boundary. Thread: the
  // switcher's.
  std::optional<TimePoint> look(TimePoint now, std::optional<TimePoint> boundary, Slots slots);

  // What was seen since the last call, oldest first. Thread: the main one.
  template <class Each>
  void fetch(Each&& each) {
    const std::uint32_t end = written_.load(std::memory_order_acquire);
    for (std::uint32_t i = fetched_.load(std::memory_order_relaxed); i != end; ++i) {
      each(kept_[i % kMostKept]);
    }
    fetched_.store(end, std::memory_order_release);
  }

  // Processor time of all tasks now, as TaskGlance::used and in its order. Thread: any.
  [[nodiscard]] std::vector<Duration> used() const;

  [[nodiscard]] const std::vector<Gang>& gangs() const { return gangs_; }

  [[nodiscard]] Duration period() const { return period_; }

 private:
  [[nodiscard]] bool is_time(TimePoint now, std::optional<TimePoint> boundary) const;
  void look_at_all(Slots slots, TimePoint now);
  void look_at_tasks(const Gang& gang, std::size_t first);

  const Duration period_;
  const std::vector<Gang> gangs_;
  TimePoint next_{};          // the switcher's thread's
  Glance last_;               // ... too: of a gang that did not run since it is still true
  std::vector<Glance> kept_;  // [kMostKept]
  std::atomic<std::uint32_t> written_{0}, fetched_{0};  // ever
};

}  // namespace score::node
