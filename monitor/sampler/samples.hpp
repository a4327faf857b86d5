#pragma once
// Samples are the measurements of a node, as values. Everything is a total since the start of the
// object that it describes. So a lost or skipped sample costs nothing: rates are differences
// (load_meter.hpp).

#include "base/ids.hpp"
#include "base/model/switch_overhead.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace score::monitor {

// Samples of a shorter period are sent together, this often (docs/adr/0032). With many nodes they
// are sent with a heartbeat, because their messages would keep the head busy.
inline constexpr Duration kTogether = 500ms;
inline constexpr Duration kTogetherOfMany = 1s;
inline constexpr std::size_t kMany = 16;  // more nodes than this are many

[[nodiscard]] constexpr Duration together(std::size_t nodes) {
  return nodes > kMany ? kTogetherOfMany : kTogether;
}

enum class TaskState : std::uint8_t {
  Running,    // on a core, or ready to run
  WaitsInPm,  // in the communication library, without work
  Blocked,    // in the kernel: I/O, a timer, another process
  Frozen,     // while a different gang has its turn
  Stopped,    // by a signal or a debugger
  Ended,
  Fills,  // as Running, but at idle priority while a different gang has its turn
};

inline constexpr std::size_t kTaskStates = 7;

[[nodiscard]] const char* name_of(TaskState state);  // "running", "pm", "blocked", "fill" ...

// Traffic is the number of messages and bytes through PM since the start.
struct Traffic {
  std::uint64_t sent_messages = 0;
  std::uint64_t received_messages = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;

  friend bool operator==(const Traffic&, const Traffic&) = default;
};

struct PmReading {
  bool waits = false;  // at this moment
  Traffic traffic;

  friend bool operator==(const PmReading&, const PmReading&) = default;
};

// TaskSample describes a task: its process and all processes that it started.
struct TaskSample {
  Rank rank;
  std::int32_t pid = 0;
  TaskState state = TaskState::Blocked;
  Duration user{0}, system{0};  // CPU
  Duration waited{0};           // for a processor: first thread of each of its processes
  std::uint64_t switches = 0;   // context switches
  Bytes memory;                 // resident
  std::uint32_t processes = 0;
  std::optional<PmReading> pm;  // empty: it has no context

  friend bool operator==(const TaskSample&, const TaskSample&) = default;
};

// GangSample describes an attempt's part on a node.
struct GangSample {
  AttemptId attempt;
  Duration scheduled{0};          // time in which it was allowed to run
  bool runs = false;              // in a turn of the timetable, as switches record it
  std::vector<TaskSample> tasks;  // by rank
  // Frames sent to each node of the job through PM's network, modulo 2^32; empty: not sent.
  std::vector<std::uint32_t> frames_to;
  Duration filled{0};  // processor time used at idle priority
  bool fills = false;  // runs at idle priority now, outside its turn

  friend bool operator==(const GangSample&, const GangSample&) = default;
};

// SwitchSample describes one gang switch of a node.
struct SwitchSample {
  TimePoint due{};                        // cluster time
  Duration woke{0}, stopped{0}, done{0};  // after due
  std::vector<AttemptId> left, entered;
  // The next three count from `due`. They equal `stopped` if no network channel changed hands.
  Duration guarded{0}, saved{0}, restored{0};
  std::vector<AttemptId> filling;  // all attempts that fill from then on
  Duration slice{0};               // the slice that begins; 0: no boundary follows
  bool busy = false;               // a job is scheduled from then on

  // Returns false if the sample only notes that no job is scheduled any more.
  [[nodiscard]] bool is_switch() const { return !left.empty() || !entered.empty(); }

  [[nodiscard]] SwitchMoments moments() const { return {woke, stopped, restored, done}; }

  friend bool operator==(const SwitchSample&, const SwitchSample&) = default;
};

// SwitchPhase names the phases of a switch (docs/reference/glossary.md), which are labels of
// scored_gang_switch_duration_seconds. Each ends at a moment of the sample: wake at `woke`, stop at
// `stopped`, go at `done`.
enum class SwitchPhase : std::uint8_t { Wake, Stop, Guard, Save, Restore, Go, Total };

inline constexpr std::size_t kSwitchPhases = 7;

[[nodiscard]] const char* name_of(SwitchPhase phase);
// Returns nothing if the switch had no such phase, because no network channel changed hands.
[[nodiscard]] std::optional<Duration> length_of(const SwitchSample& sample, SwitchPhase phase);

// These are the upper bounds of the buckets of every histogram of switch times.
inline constexpr std::array<Duration, 13> kSwitchBuckets = {
    20us, 50us, 100us, 200us, 500us, 1ms, 2ms, 5ms, 10ms, 20ms, 50ms, 100ms, 200ms};

// These are the upper bounds for the times that jobs wait for their start.
inline constexpr std::array<Duration, 12> kWaitBuckets = {10ms, 50ms, 100ms, 500ms, 1s, 5s,
                                                          10s,  1min, 5min,  30min, 2h, 24h};

// A Histogram has one counter per bound; the last bucket is for lengths above all bounds.
template <const auto& kBounds>
struct Histogram {
  std::array<std::uint64_t, kBounds.size() + 1> counts{};
  Duration sum{0};

  void add(Duration length) {
    const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), length);
    ++counts[static_cast<std::size_t>(bound - kBounds.begin())];
    sum += length;
  }

  void add(const Histogram& other) {
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
    sum += other.sum;
  }

  static constexpr const auto& bounds() { return kBounds; }

  friend bool operator==(const Histogram&, const Histogram&) = default;
};

using TimeHistogram = Histogram<kSwitchBuckets>;
using WaitHistogram = Histogram<kWaitBuckets>;

// NodeTotals are the totals of a node daemon since its start.
struct NodeTotals {
  std::uint64_t switches = 0, late = 0;
  SwitchOverhead overhead;
  Duration busy{0};      // time in which at least one job was scheduled
  bool is_whole = true;  // false: the next fields are sent only when a scrape requests them
  std::array<TimeHistogram, kSwitchPhases> phases{};
  Duration user{0}, system{0};  // CPU of jobs
  Duration filled{0};           // part of that at idle priority
  Traffic traffic;

  friend bool operator==(const NodeTotals&, const NodeTotals&) = default;
};

struct NodeSample {
  TimePoint taken{};  // cluster time
  std::vector<GangSample> gangs;
  std::vector<SwitchSample> switches;  // since the previous sample
  std::uint64_t switches_lost = 0;     // in addition to these
  std::optional<NodeTotals> totals;    // empty: little has changed
  bool totals_only = false;            // its gangs have only their filled time, or there are none
};

}  // namespace score::monitor
