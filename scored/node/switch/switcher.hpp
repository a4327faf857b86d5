// The gang switch of a node: a thread of its own that follows the plan at absolute times. It sleeps
// until the next boundary, without one until it is woken.
#pragma once

#include "base/result.hpp"
#include "scored/node/kernel/priority_loan.hpp"
#include "scored/node/switch/switch_follower.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <pthread.h>
#include <string>
#include <vector>

namespace score::node {

struct SwitcherOptions {
  Duration late_after = std::chrono::milliseconds{1};
  bool wants_real_time = true;  // false: as if it were not allowed
  gang::IdleRule idle{};
  bool uses_barriers = false;  // see barrier_meetings.hpp
};

// How the switcher gets the processor when everything else wants it too.
enum class SwitchPriority : std::uint8_t {
  RealTime,  // SCHED_FIFO
  Nice,      // nice -20
  None,      // the ordinary one: tasks must run at a lower priority
};

// Every member function is for the main thread.
class Switcher {
 public:
  explicit Switcher(SwitcherOptions options = {});
  // stop().
  ~Switcher();
  Switcher(const Switcher&) = delete;
  Switcher& operator=(const Switcher&) = delete;

  // The main loop has its turn, and should have the next one within `time`: if it is late by then
  // while attempts are here, the thread lends it real-time priority until it calls again. True: it
  // had been lent.
  bool note_turn(TimePoint now, Duration time);

  // Has the thread made progress since the previous call? It has not if it should have switched
  // 500 ms ago or did not see what it was given before the previous call: then it hangs.
  [[nodiscard]] bool makes_progress(TimePoint now);

  // Starts the thread. Errors: errno of pthread_create, eventfd.
  Status start();
  // Everything goes on; the thread has ended when it returns. Idempotent.
  void stop();

  // A switch that begins later than this is counted as late.
  [[nodiscard]] Duration late_after() const { return options_.late_after; }

  // From plan.start on, or now if that is past, this plan is followed; plans that would start later
  // than it are dropped.
  void follow(gang::SwitchPlan plan);
  // A new attempt, running. If the plan in force manages it and it is not its turn, it is stopped
  // at once. Replaces one of the same id. Without `usage` it is never idle. cores: that it has been
  // given here.
  void add(AttemptId attempt, std::unique_ptr<SwitchTarget> target,
           std::unique_ptr<CpuUsage> usage = nullptr, std::uint32_t cores = 1);
  // See IdleWatch::set_leader(). Ignored for an unknown attempt.
  void set_leader(AttemptId attempt, pid_t process);
  // The attempt has ended: it is never touched again once the thread has seen this (at once, unless
  // it is switching). Ignored for an unknown attempt.
  void remove(AttemptId attempt);
  // Frees what follow(), add() and the like replaced and the thread has given back; they do this
  // too. To be called regularly.
  void collect();
  // The attempt's network, from now on; null: none. Before add() or after it. remove() drops it.
  void set_network(AttemptId attempt, std::shared_ptr<ChannelUser> network);

  // Barrier mode: how the nodes of an attempt meet without the head. Either may come first, and be
  // replaced; without a channel: through the head. remove() drops the gang, which is not null.
  void set_meeting_channel(std::shared_ptr<MeetingChannel> channel);
  void set_gang(AttemptId attempt, std::shared_ptr<DirectGang> gang);

  // Looks at the attempts whenever the thread is awake; may be null.
  void set_observer(std::shared_ptr<SwitchObserver> observer);

  // How long a channel rests between two attempts.
  void set_guard(Duration guard) { guard_ns_.store(guard.count(), std::memory_order_relaxed); }

  // How long it has run since it was added, whether it runs now, and whether it has its turn by the
  // timetable, as the trace records. Unknown attempt: 0, false.
  struct RunTime {
    Duration ran{0};
    bool runs = false;
    bool has_turn = false;
    bool fills = false;  // runs at idle priority now
  };

  [[nodiscard]] RunTime run_time(AttemptId attempt, TimePoint now) const;

  // Processor time that its tasks used at idle priority; unknown attempt: 0.
  [[nodiscard]] Duration filled(AttemptId attempt) const;
  // ... of all attempts that were ever added.
  [[nodiscard]] Duration filled() const;

  // An eventfd: readable when take_changed_activities() or take_reached_meetings() may have
  // something new; the caller reads it.
  [[nodiscard]] int activity_fd() const { return activity_fd_.get(); }

  // Attempts whose is_idle() has changed since it was last reported; at first false.
  struct Change {
    AttemptId attempt{0};
    bool idle = false;
  };

  [[nodiscard]] std::vector<Change> take_changed_activities();
  // Barrier mode: the meetings that the thread has reached since the last call.
  [[nodiscard]] std::vector<base::MeetingReached> take_reached_meetings();
  // Barrier mode: whether the head can announce that a gang has met; at first not. Without it the
  // node switches by the clock.
  void set_meets(bool meets);
  // Ignored for an unknown attempt.
  void end_meeting(const base::MetAll& met);
  [[nodiscard]] bool is_idle(AttemptId attempt) const;

  [[nodiscard]] SwitchPriority priority() const { return priority_; }

  [[nodiscard]] const SwitchCounters& counters() const { return counters_; }

  [[nodiscard]] const SwitchTrace& trace() const { return trace_; }

 private:
  static void* thread_main(void* self);
  void run();
  void get_priority();
  void publish();
  void wake();
  void wait_for_news(const SwitchFollower& follower, std::uint32_t seen,
                     std::optional<TimePoint> deadline);
  void retire(SwitchProgram* program);

  SwitcherOptions options_;
  PriorityLoan loan_;
  SwitchTrace trace_;
  SwitchCounters counters_;
  std::vector<gang::SwitchPlan> plans_;  // by start; the first may be in force
  std::vector<std::shared_ptr<SwitchEntry>> entries_;
  std::map<AttemptId, std::shared_ptr<ChannelUser>> networks_;
  std::map<AttemptId, std::shared_ptr<DirectGang>> gangs_;
  std::shared_ptr<MeetingChannel> meeting_channel_;
  std::shared_ptr<SwitchObserver> observer_;
  std::atomic<Duration::rep> guard_ns_{0};
  std::atomic<bool> meets_{false};
  std::vector<AttemptId> reported_idle_;
  Duration ended_filled_{0};  // of attempts that were removed
  UniqueFd activity_fd_;
  UniqueFd bell_fd_;  // barrier mode: rung with bell_, for a thread that waits for datagrams too

  pthread_t thread_{};
  bool is_running_ = false;
  SwitchPriority priority_ = SwitchPriority::None;
  std::atomic<std::uint32_t> ready_{0};  // 1: priority_ is known
  std::uint32_t rung_before_ = 0;        // bell_ at the previous makes_progress()

  // The exchange of programs. No lock is held, so the thread never waits.
  std::atomic<std::uint32_t> bell_{0};  // counts; the thread sleeps on it
  // What the thread has done: the bell it has answered, and when it wakes next at the latest.
  std::atomic<std::uint32_t> answered_{0};
  std::atomic<Duration::rep> wakes_at_{Duration::max().count()};
  std::atomic<bool> stopping_{false};
  std::atomic<SwitchProgram*> inbox_{nullptr};    // the newest, if not yet taken
  std::atomic<SwitchProgram*> retired_{nullptr};  // list of programs given back
};

}  // namespace score::node
