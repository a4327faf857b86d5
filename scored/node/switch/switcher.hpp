// Performs the gang switches of a node. A separate thread follows the plan at absolute times. It
// sleeps until the next boundary, or until it is woken if there is none.
#pragma once

#include "base/result.hpp"
#include "gang/node/freeze_watch.hpp"
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
  bool wants_real_time = true;  // false: behaves as if it were not allowed
  gang::IdleRule idle{};
  bool uses_barriers = false;  // see barrier_meetings.hpp
};

// Describes how the switcher gets the processor when other processes also want it.
enum class SwitchPriority : std::uint8_t {
  RealTime,  // SCHED_FIFO
  Nice,      // nice -20
  None,      // ordinary priority: tasks must run at a lower priority
};

// All member functions are for the main thread.
class Switcher {
 public:
  explicit Switcher(SwitcherOptions options = {});
  // Calls stop().
  ~Switcher();
  Switcher(const Switcher&) = delete;
  Switcher& operator=(const Switcher&) = delete;

  // Reports that the main loop has its turn, and should have the next one within `time`. If it is
  // late by then while attempts are here, the thread lends it real-time priority until the next
  // call. Returns true if it had been lent.
  bool note_turn(TimePoint now, Duration time);

  // Returns true if the thread has made progress since the previous call. It hangs if it should
  // have switched 500 ms ago, or if it has not seen what it was given before the previous call.
  [[nodiscard]] bool makes_progress(TimePoint now);

  // Starts the thread. Errors: errno of pthread_create, eventfd.
  Status start();
  // Continues all attempts; the thread has ended when this returns. May be called again.
  void stop();

  // Follows this plan from plan.start on, or from now on if that is past. Plans that would start
  // later than it are dropped.
  void follow(gang::SwitchPlan plan);
  // Adds a new attempt that is running. If the plan in force manages it and it is not its turn, it
  // is stopped at once. Replaces an attempt of the same id. Without `usage` it is never idle.
  // `cores` is the number of cores that it has been given here.
  void add(AttemptId attempt, std::unique_ptr<SwitchTarget> target,
           std::unique_ptr<CpuUsage> usage = nullptr, std::uint32_t cores = 1);
  // See IdleWatch::set_leader(). Ignored for an unknown attempt.
  void set_leader(AttemptId attempt, pid_t process);
  // Removes an attempt that has ended. It is never touched again once the thread has seen this (at
  // once, unless it is switching). Ignored for an unknown attempt.
  void remove(AttemptId attempt);
  // Frees objects that follow(), add() and similar functions have replaced and the thread has
  // returned; these functions do it too. Must be called regularly.
  void collect();
  // Sets the attempt's network from now on; null: none. May be called before or after add().
  // remove() drops the network.
  void set_network(AttemptId attempt, std::shared_ptr<ChannelUser> network);

  // Sets how the nodes of an attempt meet without the head, in barrier mode. The two may be set in
  // any order, and replaced; without a channel the nodes meet through the head. remove() drops the
  // gang, which must not be null.
  void set_meeting_channel(std::shared_ptr<MeetingChannel> channel);
  void set_gang(AttemptId attempt, std::shared_ptr<DirectGang> gang);

  // Sets an observer, which is called whenever the thread is awake; may be null.
  void set_observer(std::shared_ptr<SwitchObserver> observer);

  // Sets how long a channel rests between two attempts.
  void set_guard(Duration guard) { guard_ns_.store(guard.count(), std::memory_order_relaxed); }

  // Applies the plan again if attempts are stopped for longer than it explains, and returns them.
  // Must be called regularly.
  [[nodiscard]] std::vector<gang::FreezeWatch::Overdue> thaw_overdue(TimePoint now);

  // Returns how long the attempt has run since it was added, whether it runs now, and whether it
  // has its turn by the timetable, as the trace records. Unknown attempt: 0, false.
  struct RunTime {
    Duration ran{0};
    bool runs = false;
    bool has_turn = false;
    bool fills = false;  // runs at idle priority now
  };

  [[nodiscard]] RunTime run_time(AttemptId attempt, TimePoint now) const;

  // Returns the processor time that its tasks have used at idle priority; 0 for an unknown attempt.
  [[nodiscard]] Duration filled(AttemptId attempt) const;
  // Returns the same for all attempts that were ever added.
  [[nodiscard]] Duration filled() const;

  // Returns an eventfd. It is readable when take_changed_activities() or take_reached_meetings()
  // may return something new; the caller must read it.
  [[nodiscard]] int activity_fd() const { return activity_fd_.get(); }

  // Returns the attempts whose is_idle() has changed since it was last reported; the initial value
  // is false.
  struct Change {
    AttemptId attempt{0};
    bool idle = false;
  };

  [[nodiscard]] std::vector<Change> take_changed_activities();
  // Returns the meetings that the thread has reached since the last call, in barrier mode.
  [[nodiscard]] std::vector<base::MeetingReached> take_reached_meetings();
  // Sets whether the head can announce that a gang has met, in barrier mode; initially it cannot.
  // Without it the node switches by the clock.
  void set_meets(bool meets);
  // Does nothing for an unknown attempt.
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
  gang::FreezeWatch freeze_watch_;
  Duration ended_filled_{0};  // of attempts that were removed
  UniqueFd activity_fd_;
  UniqueFd bell_fd_;  // barrier mode: rung with bell_, for a thread that also waits for datagrams

  pthread_t thread_{};
  bool is_running_ = false;
  SwitchPriority priority_ = SwitchPriority::None;
  std::atomic<std::uint32_t> ready_{0};  // 1: priority_ is known
  std::uint32_t rung_before_ = 0;        // bell_ at the previous call of makes_progress()

  // The members below exchange programs. No lock is held, so the thread never waits.
  std::atomic<std::uint32_t> bell_{0};  // counts; the thread sleeps on it
  // The progress of the thread: the bell that it has answered, and its latest next wake-up.
  std::atomic<std::uint32_t> answered_{0};
  std::atomic<Duration::rep> wakes_at_{Duration::max().count()};
  std::atomic<bool> stopping_{false};
  std::atomic<SwitchProgram*> inbox_{nullptr};    // the newest program, if it has not been taken
  std::atomic<SwitchProgram*> retired_{nullptr};  // list of the programs given back
};

}  // namespace score::node
