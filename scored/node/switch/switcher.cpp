// The thread sleeps in one system call: a futex wait with an absolute deadline on the monotonic
// clock. The deadline is the next boundary; the word is a counter that the main thread raises after
// it has put a new program into the inbox. Programs pass through single atomic pointers in both
// directions, so neither thread ever waits for the other, regardless of their priorities.
//
// A switch finds the caches and the page translations cold, which is most of its cost outside the
// kernel. So all code of the switch is marked hot, and the linker places it together.
#include "scored/node/switch/switcher.hpp"

#include "base/limits.hpp"
#include "scored/node/kernel/kernel_call.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma weak __rseq_offset  // glibc 2.35 and later have them
#pragma weak __rseq_size

namespace score::node {

namespace {

constexpr int kRealTimePriority = 20;  // below the kernel's own threads (50)
constexpr int kLeastNice = -20;
constexpr Duration kHangs = std::chrono::milliseconds{500};      // later than this, it makes no
                                                                 // progress
constexpr Duration kShortTurn = std::chrono::microseconds{100};  // the shortest possible
constexpr unsigned kLeastRseqBytes = 32;  // the size that libc registers, regardless of __rseq_size
constexpr std::size_t kStackBytes = 64 * limits::kKiB;

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

// This is struct sched_attr of sched_setattr(2), because the kernel's header for it conflicts with
// libc's.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};

static_assert(sizeof(SchedulingAttributes) == 48, "the first published size");

// Even without privileges the thread may request short turns. The scheduler then lets it run soon
// after it wakes (EEVDF, Linux 6.12; older kernels ignore it).
void ask_for_short_turns() {
  SchedulingAttributes attributes;
  attributes.runtime_ns = static_cast<std::uint64_t>(kShortTurn.count());
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

[[gnu::hot]] long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
                        const timespec* deadline) {
  return kernel_call(SYS_futex, address_of(&word), operation, value, address_of(deadline), 0,
                     static_cast<long>(FUTEX_BITSET_MATCH_ANY));
}

// Ends the thread's registration for rseq(2), which libc makes for each thread. The kernel reads
// that memory whenever the thread resumes after preemption. That is one more cold page, for
// sched_getcpu(), which is not called here.
void leave_restartable_sequences() {
#ifdef RSEQ_SIG
  constexpr int kUnregister = 1;
  if (&__rseq_size == nullptr) return;
  auto* area = static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset;
  syscall(SYS_rseq, area, std::max(__rseq_size, kLeastRseqBytes), kUnregister, RSEQ_SIG);
#endif
}

// Returns when the word is not `seen` or the deadline has passed, or spuriously.
[[gnu::hot]] void wait_until(std::atomic<std::uint32_t>& word, std::uint32_t seen,
                             std::optional<TimePoint> deadline) {
  if (!deadline) {
    futex(word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen, nullptr);
    return;
  }
  const auto ns = std::max(deadline->time_since_epoch(), Duration::zero()).count();
  const timespec at{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  futex(word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen, &at);
}

[[gnu::hot]] TimePoint kernel_now() {
  return TimePoint(kernel_time(CLOCK_MONOTONIC));
}

void sleep_until(TimePoint time) {
  const auto ns = std::max(time.time_since_epoch(), Duration::zero()).count();
  const timespec at{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) continue;
}

}  // namespace

Switcher::Switcher(SwitcherOptions options) : options_(options) {}

Switcher::~Switcher() {
  stop();
  collect();
}

Status Switcher::start() {
  activity_fd_ = UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (options_.uses_barriers) bell_fd_ = UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!activity_fd_ || (options_.uses_barriers && !bell_fd_)) {
    return fail(errno_code(errno), "cannot make an eventfd");
  }
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  // The least is 128 KB on arm64.
  const auto least = static_cast<std::size_t>(std::max(sysconf(_SC_THREAD_STACK_MIN), 0L));
  pthread_attr_setstacksize(&attributes, std::max(kStackBytes, least));
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread_, &attributes, &Switcher::thread_main, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error != 0) return fail(errno_code(error), "cannot start the switcher's thread");
  is_running_ = true;
  ready_.wait(0);
  return {};
}

void Switcher::stop() {
  if (!is_running_) return;
  stopping_.store(true, std::memory_order_release);
  wake();
  pthread_join(thread_, nullptr);
  is_running_ = false;
}

bool Switcher::note_turn(TimePoint now, Duration time) {
  return options_.wants_real_time && loan_.renew(now, time);
}

bool Switcher::makes_progress(TimePoint now) {
  const bool has_answered =
      static_cast<std::int32_t>(answered_.load(std::memory_order_relaxed) - rung_before_) >= 0;
  rung_before_ = bell_.load(std::memory_order_relaxed);
  const Duration wakes_at{wakes_at_.load(std::memory_order_relaxed)};
  return has_answered && wakes_at > now.time_since_epoch() - kHangs;
}

void Switcher::follow(gang::SwitchPlan plan) {
  std::erase_if(plans_, [&](const auto& other) { return other.start >= plan.start; });
  plans_.push_back(std::move(plan));
  publish();
}

// Attempts cannot fill in barrier mode: a boundary waits for messages between nodes, which a filler
// would delay.
void Switcher::add(AttemptId attempt, std::unique_ptr<SwitchTarget> target,
                   std::unique_ptr<CpuUsage> usage, std::uint32_t cores) {
  std::erase_if(entries_, [&](const auto& entry) { return entry->attempt == attempt; });
  entries_.push_back(std::make_shared<SwitchEntry>(attempt, std::move(target), std::move(usage),
                                                   options_.idle, cores));
  if (options_.uses_barriers) entries_.back()->can_fill = false;
  entries_.back()->clock.start(monotonic_now());
  publish();
}

void Switcher::set_leader(AttemptId attempt, pid_t process) {
  for (const auto& entry : entries_) {
    if (entry->attempt == attempt) entry->watch.set_leader(process);
  }
}

Switcher::RunTime Switcher::run_time(AttemptId attempt, TimePoint now) const {
  for (const auto& entry : entries_) {
    if (entry->attempt != attempt) continue;
    return {entry->clock.read(now), entry->clock.is_running(), entry->has_turn,
            entry->account.fills()};
  }
  return {};
}

// An attempt that could not be continued at its boundary is not tried again before the next one,
// and a plan may have none.
std::vector<gang::FreezeWatch::Overdue> Switcher::thaw_overdue(TimePoint now) {
  std::vector<gang::FreezeWatch::Stopped> stopped;
  for (const auto& entry : entries_) {
    if (entry->clock.is_running() || entry->account.fills()) continue;
    stopped.push_back({entry->attempt, entry->clock.read(now)});
  }
  const gang::SwitchPlan none;
  const gang::SwitchPlan* plan = &none;
  for (const auto& one : plans_) {
    if (one.start <= now) plan = &one;
  }
  auto overdue = freeze_watch_.check(stopped, *plan, now);
  if (!overdue.empty()) publish();
  return overdue;
}

Duration Switcher::filled(AttemptId attempt) const {
  for (const auto& entry : entries_) {
    if (entry->attempt == attempt) return entry->account.read(entry->watch);
  }
  return Duration{0};
}

Duration Switcher::filled() const {
  Duration sum = ended_filled_;
  for (const auto& entry : entries_) sum += entry->account.read(entry->watch);
  return sum;
}

std::vector<Switcher::Change> Switcher::take_changed_activities() {
  std::vector<Change> changes;
  for (const auto& entry : entries_) {
    const auto listed = std::find(reported_idle_.begin(), reported_idle_.end(), entry->attempt);
    const bool is_idle = entry->watch.is_idle();
    if (is_idle == (listed != reported_idle_.end())) continue;
    changes.push_back({entry->attempt, is_idle});
    if (is_idle) {
      reported_idle_.push_back(entry->attempt);
    } else {
      reported_idle_.erase(listed);
    }
  }
  return changes;
}

std::vector<base::MeetingReached> Switcher::take_reached_meetings() {
  std::vector<base::MeetingReached> all;
  for (const auto& entry : entries_) {
    for (std::size_t i = 0; i < base::kMeetings; ++i) {
      const auto reached = entry->reached[i].load(std::memory_order_acquire);
      if (std::exchange(entry->reported[i], reached) == reached) continue;
      all.push_back({entry->attempt, static_cast<base::Meeting>(i), TimePoint(Duration(reached))});
    }
  }
  return all;
}

void Switcher::set_meets(bool meets) {
  if (meets_.exchange(meets, std::memory_order_release) != meets) wake();
}

void Switcher::end_meeting(const base::MetAll& met) {
  for (const auto& entry : entries_) {
    if (entry->attempt != met.attempt) continue;
    entry->met[static_cast<std::size_t>(met.meeting)].store(met.boundary.time_since_epoch().count(),
                                                            std::memory_order_release);
    wake();
  }
}

bool Switcher::is_idle(AttemptId attempt) const {
  return std::any_of(entries_.begin(), entries_.end(), [attempt](const auto& entry) {
    return entry->attempt == attempt && entry->watch.is_idle();
  });
}

void Switcher::remove(AttemptId attempt) {
  std::erase(reported_idle_, attempt);
  const auto is_it = [&](const auto& entry) { return entry->attempt == attempt; };
  networks_.erase(attempt);
  gangs_.erase(attempt);
  ended_filled_ += filled(attempt);
  if (std::erase_if(entries_, is_it) > 0) publish();
}

void Switcher::set_network(AttemptId attempt, std::shared_ptr<ChannelUser> network) {
  networks_[attempt] = std::move(network);
  publish();
}

void Switcher::set_meeting_channel(std::shared_ptr<MeetingChannel> channel) {
  meeting_channel_ = std::move(channel);
  publish();
}

void Switcher::set_gang(AttemptId attempt, std::shared_ptr<DirectGang> gang) {
  gangs_[attempt] = std::move(gang);
  publish();
}

void Switcher::set_observer(std::shared_ptr<SwitchObserver> observer) {
  observer_ = std::move(observer);
  publish();
}

// Hands over all plans that are or will be in force, with all attempts.
void Switcher::publish() {
  const TimePoint now = monotonic_now();
  while (plans_.size() > 1 && plans_[1].start <= now) plans_.erase(plans_.begin());
  auto program = std::make_unique<SwitchProgram>(plans_, entries_);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto network = networks_.find(entries_[i]->attempt);
    const auto gang = gangs_.find(entries_[i]->attempt);
    const bool meets = meeting_channel_ && gang != gangs_.end();
    if (meets && gang->second->is_reached_by(*meeting_channel_)) program->gangs[i] = gang->second;
    if (network == networks_.end()) continue;
    program->networks[i] = network->second;
    if (network->second) entries_[i]->watch.set_contexts(network->second->contexts());
  }
  program->meetings = meeting_channel_;
  program->find_shared_channels();
  program->observer = observer_;
  const std::unique_ptr<SwitchProgram> not_taken(
      inbox_.exchange(program.release(), std::memory_order_acq_rel));
  wake();
  collect();
}

void Switcher::wake() {
  bell_.fetch_add(1, std::memory_order_release);
  if (bell_fd_) eventfd_write(bell_fd_.get(), 1);
  futex(bell_, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, 1, nullptr);
}

void Switcher::collect() {
  SwitchProgram* program = retired_.exchange(nullptr, std::memory_order_acquire);
  if (!is_running_) delete inbox_.exchange(nullptr, std::memory_order_acquire);
  while (program != nullptr) {
    const std::unique_ptr<SwitchProgram> done(program);
    program = done->retired_next;
  }
}

// ---- The thread ---------------------------------------------------------------------------------

void* Switcher::thread_main(void* self) {
  static_cast<Switcher*>(self)->run();
  return nullptr;
}

void Switcher::get_priority() {
  prctl(PR_SET_NAME, "switcher", 0, 0, 0);
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  const sched_param attributes{.sched_priority = kRealTimePriority};
  if (options_.wants_real_time &&
      sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &attributes) == 0) {
    priority_ = SwitchPriority::RealTime;
  } else if (options_.wants_real_time &&
             setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLeastNice) == 0) {
    priority_ = SwitchPriority::Nice;
  } else {
    ask_for_short_turns();
  }
  ready_.store(1, std::memory_order_release);
  ready_.notify_one();
}

[[gnu::hot]] void Switcher::run() {
  get_priority();
  leave_restartable_sequences();
  SwitchFollower follower({&kernel_now, &sleep_until, guard_ns_}, trace_, counters_);
  if (options_.uses_barriers) follower.use_barriers();
  while (!stopping_.load(std::memory_order_acquire)) {
    const std::uint32_t seen = bell_.load(std::memory_order_acquire);
    const bool has_come = inbox_.load(std::memory_order_relaxed) != nullptr;
    if (auto* program = has_come ? inbox_.exchange(nullptr, std::memory_order_acq_rel) : nullptr) {
      retire(follower.take(program));
    }
    follower.set_meets(meets_.load(std::memory_order_acquire));
    const auto next = follower.step();
    const bool has_met = follower.take_meeting_change();
    if (follower.take_activity_change() || has_met) eventfd_write(activity_fd_.get(), 1);
    if (stopping_.load(std::memory_order_acquire)) continue;
    const TimePoint late = follower.has_attempts() ? loan_.due() : TimePoint::max();
    const TimePoint wakes_at = std::min(late, next.value_or(TimePoint::max()));
    answered_.store(seen, std::memory_order_relaxed);
    wakes_at_.store(wakes_at.time_since_epoch().count(), std::memory_order_relaxed);
    if (late >= next.value_or(TimePoint::max())) {
      wait_for_news(follower, seen, next);
    } else {
      wait_for_news(follower, seen, late);
      loan_.lend(kernel_now());
    }
  }
  if (auto* program = inbox_.exchange(nullptr, std::memory_order_acq_rel)) {
    retire(follower.take(program));
  }
  follower.release();
  retire(follower.program());
}

// Waits until the bell rings, a datagram arrives, or the deadline has passed.
[[gnu::hot]] void Switcher::wait_for_news(const SwitchFollower& follower, std::uint32_t seen,
                                          std::optional<TimePoint> deadline) {
  const int meetings = follower.meeting_fd();
  if (meetings < 0) return wait_until(bell_, seen, deadline);
  timespec left{};
  if (deadline) {
    const auto ns = std::max(*deadline - kernel_now(), Duration::zero()).count();
    left = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  }
  std::array<pollfd, 2> news{pollfd{bell_fd_.get(), POLLIN, 0}, pollfd{meetings, POLLIN, 0}};
  ppoll(news.data(), news.size(), deadline ? &left : nullptr, nullptr);
  eventfd_t rung = 0;
  if (news[0].revents != 0) eventfd_read(bell_fd_.get(), &rung);
}

void Switcher::retire(SwitchProgram* program) {
  if (program == nullptr) return;
  SwitchProgram* head = retired_.load(std::memory_order_relaxed);
  do {
    program->retired_next = head;
  } while (!retired_.compare_exchange_weak(head, program, std::memory_order_release,
                                           std::memory_order_relaxed));
}

}  // namespace score::node
