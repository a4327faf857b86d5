// What the switcher's thread does, without the thread: given a program and the time, stop and
// continue whom the plan says.
#pragma once

#include "gang/node/switch_plan.hpp"
#include "scored/node/kernel/run_clock.hpp"
#include "scored/node/network/channel_user.hpp"
#include "scored/node/observe/glances.hpp"
#include "scored/node/switch/idle_watch.hpp"
#include "scored/node/switch/switch_target.hpp"
#include "scored/node/switch/switch_trace.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace score::node {

// One attempt. Its state belongs to the follower, the rest does not change. What every switch needs
// comes first, in as few cache lines as it takes: a switch finds them cold.
struct alignas(64) SwitchSlot {
  using Boundary = TimePoint::rep;  // in ns of cluster time; 0: none

  // Without `usage` nobody can tell whether it is idle.
  SwitchSlot(AttemptId id, std::unique_ptr<SwitchTarget> how,
             std::unique_ptr<CpuUsage> usage = nullptr, gang::IdleRule rule = {})
      : attempt(id), target(std::move(how)), watch(std::move(usage), rule) {}

  const AttemptId attempt;
  const std::unique_ptr<SwitchTarget> target;
  const int freezer = target->freezer();  // < 0: ask the target
  bool stopped = false;
  // It is let run by the timetable: not in the background, nor because no plan knows it.
  std::atomic<bool> has_turn{false};
  TimePoint stopped_at{};  // if stopped
  RunClock clock;          // not stopped; whoever makes the slot starts it
  Boundary waits_for = 0;  // barrier mode: it enters; stopped until its gang has met, at this one
  SlotWatch watch;

  // Barrier mode. [base::Meeting]
  std::array<std::atomic<Boundary>, base::kMeetings> reached{};  // for the main thread to tell
  std::array<std::atomic<Boundary>, base::kMeetings> met{};      // the main thread was told
  std::array<Boundary, base::kMeetings> told{};                  // the main thread has told
  Boundary left_at = 0;                                          // the meeting of who leaves
  bool is_restored = false;                                      // waits_for: has its channel
  TimePoint drained_by{};  // until then it waits for those who leave to have met
  TimePoint goes_by{};     // then it goes alone

  // The follower's: an errno or 0.
  int stop() noexcept { return freezer >= 0 ? write_freezer(freezer, '1') : target->stop(); }

  int go() noexcept { return freezer >= 0 ? write_freezer(freezer, '0') : target->go(); }
};

// Made by the main thread, handed over as a whole, given back as a whole: the follower neither
// allocates nor frees.
struct SwitchProgram {
  // Until the next one only this attempt runs, on this node.
  struct Turn {
    Duration offset{0};  // in the cycle
    std::size_t index = 0;
    SwitchSlot* slot = nullptr;      // null: nobody
    ChannelUser* network = nullptr;  // null: it has none; known when the program is taken
  };

  struct Part {
    gang::SwitchPlan plan;
    std::vector<char> runs;  // [segment][slot], row-major: not 0 if it runs; unmanaged always do
    std::vector<char> background;  // [slot]
    WatchPace pace;
    std::vector<Turn> turns;  // in order, neighbours differ; empty: there is more to it than turns
  };

  // `plans` by start, each in force until the next one starts. Before the first, and under a plan
  // without segments, everything runs.
  SwitchProgram(std::vector<gang::SwitchPlan> plans,
                std::vector<std::shared_ptr<SwitchSlot>> all_slots);

  std::vector<Part> parts;
  std::vector<std::shared_ptr<SwitchSlot>> slots;
  std::vector<std::shared_ptr<ChannelUser>> networks;  // [slot]; null: it has none
  std::shared_ptr<Glances> glances;                    // null: nobody watches
  SwitchProgram* retired_next = nullptr;               // of the list in which programs go back
};

struct SwitchCounters {
  std::atomic<std::uint64_t> switches{0};
  std::atomic<std::uint64_t> late{0};    // begun later than SwitchFollower::late_after
  std::atomic<std::uint64_t> failed{0};  // stop() or go() said no
  // From the boundaries to the entering jobs going on: what switching took from them.
  std::atomic<Duration::rep> lost_ns{0};
  RunClock busy;  // at least one attempt runs
  // Barrier mode: attempts that entered without having met, or not at all: a slice was lost.
  std::atomic<std::uint64_t> unmet{0};
  ChannelCounters channels;
};

// Of counters that only the caller writes. An atomic addition would wait for all that is written
// before it.
template <class T>
void count(std::atomic<T>& counter, T more) {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

class SwitchFollower {
 public:
  // Nobody waits longer for other nodes to have restored, after the guard.
  static constexpr Duration kMostRestore = std::chrono::microseconds{400};

  using Now = TimePoint (*)();

  struct Clock {
    Now now;
    void (*sleep_until)(TimePoint);
    // How long a channel rests between two attempts: until no node sends for the first one any
    // more, and what is under way has come.
    const std::atomic<Duration::rep>& guard_ns;
  };

  SwitchFollower(Clock clock, Duration late_after, SwitchTrace& trace, SwitchCounters& counters)
      : clock_(clock), late_after_(late_after), trace_(trace), counters_(counters) {}

  // Barrier mode: who enters goes when its nodes have met, and nobody else waits for that.
  void use_barriers() { uses_barriers_ = true; }

  // Barrier mode: false while nobody could tell that a gang has met, for the head is away: until
  // then this node switches by the clock, and who waits goes on. At first true.
  void set_meets(bool meets);

  // Some slot's `reached` is another than when this was last asked.
  [[nodiscard]] bool take_meeting_change() { return std::exchange(meetings_changed_, false); }

  // Follows `program` from the next step on; not null. Gives back the one before, or null. A slot
  // that is in neither is as it was left.
  SwitchProgram* take(SwitchProgram* program);
  // Does what is due and says when it must be called again; nullopt: not before the next take().
  std::optional<TimePoint> step();
  // Lets everything run.
  void release();

  // Some attempt is idle that was not when this was last asked, or the other way round.
  [[nodiscard]] bool take_activity_change() { return std::exchange(activity_changed_, false); }

  [[nodiscard]] SwitchProgram* program() const { return program_; }

  [[nodiscard]] bool has_attempts() const {
    return program_ != nullptr && !program_->slots.empty();
  }

 private:
  // A row of a part; nullptr: everything runs.
  struct Position {
    const SwitchProgram::Part* part = nullptr;
    const char* runs = nullptr;
    std::optional<TimePoint> next;
  };

  // The next boundary, where all there is to do is that one attempt follows another.
  struct NextTurn {
    const SwitchProgram::Part* part = nullptr;  // null: it is not so
    std::size_t turn = 0;                       // of the part: who enters
    TimePoint due, until;                       // until: the boundary after it
    TimePoint ends;                             // of the part: when a later one starts
  };

  // switch_turn.cpp
  void expect_turn(const SwitchProgram::Part* part, TimePoint now);
  void expect_following_turn();
  [[nodiscard]] bool is_plain_turn(TimePoint woke) const;
  std::optional<TimePoint> take_turn(TimePoint woke);
  std::optional<TimePoint> leave_turns(std::uint64_t failed, TimePoint woke, TimePoint stopped);
  std::optional<TimePoint> watch_turn(SwitchSlot* leaves, SwitchSlot* enters, TimePoint woke,
                                      TimePoint stopped);

  [[nodiscard]] Position position(TimePoint now) const;
  [[nodiscard]] static bool must_stop(const SwitchSlot& slot, const Position& where, bool stays,
                                      TimePoint due);
  void follow(TimePoint woke);
  std::uint64_t apply(const Position& where, TimePoint due, TimePoint woke);
  [[nodiscard]] bool enters(std::size_t slot, const Position& where) const;
  void switch_networks(const Position& where, SwitchRecord& record);
  std::uint64_t stop(SwitchSlot& slot, TimePoint at);
  std::uint64_t let_go(SwitchSlot& slot, ChannelUser* network, TimePoint at, TimePoint now);
  static void list_entered(const SwitchSlot& slot, SwitchRecord& record);

  // switch_barrier.cpp
  [[nodiscard]] static SwitchSlot::Boundary boundary_of(const Position& where, TimePoint due);
  void call_meetings(const Position& where, TimePoint due, const SwitchRecord& record);
  void flush_leaving(const SwitchRecord& record);
  void drop_waiting(const Position& where);
  [[nodiscard]] bool may_take_channel(std::size_t slot, TimePoint now) const;
  void reach(SwitchSlot& slot, base::Meeting meeting, SwitchSlot::Boundary boundary);
  std::optional<TimePoint> attend(TimePoint now);
  void attend_one(std::size_t slot, TimePoint now);
  void assign_background(const Position& where, TimePoint woke);
  std::uint64_t stop_leaving(const Position& where, TimePoint due, TimePoint woke,
                             SwitchRecord& record);
  std::uint64_t let_entering_go(const Position& where, TimePoint stopped, SwitchRecord& record);
  void note(const SwitchRecord& record);
  void watch(TimePoint woke, TimePoint stopped);
  [[nodiscard]] std::optional<TimePoint> next_look() const;
  std::optional<TimePoint> look(TimePoint woke);
  void obey_watch(SwitchSlot& slot, TimePoint now);

  Clock clock_;
  Duration late_after_;
  SwitchTrace& trace_;
  SwitchCounters& counters_;
  SwitchProgram* program_ = nullptr;
  bool is_fresh_ = false;             // taken, not yet applied
  bool is_due_ = false;               // what is applied was awaited
  bool has_switched_ = false;         // this time somebody was stopped or continued
  std::optional<TimePoint> awaited_;  // the next boundary
  NextTurn next_turn_;
  WatchPace pace_;
  Duration restore_time_ = kMostRestore;  // after the guard; what it took lately
  bool activity_changed_ = false;
  bool uses_barriers_ = false;
  bool meets_ = true;
  bool meetings_changed_ = false;
  std::optional<SwitchRecord> open_record_;  // of a switch in which somebody still waits
};

}  // namespace score::node
