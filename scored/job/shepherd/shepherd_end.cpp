#include "base/limits.hpp"
#include "base/text.hpp"
#include "scored/job/shepherd/abandoned_memory.hpp"
#include "scored/job/shepherd/shepherd.hpp"
#include "scored/job/tasks/children.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

// Output, and the end: the part of the shepherd that must come to an end whatever the tasks do. A
// process that a task left behind is killed; one that escaped by handing a pipe to a stranger
// cannot hold the end up, for after a grace only what is in the pipes at that moment is still read.
// How long a slow reader takes for that is the reader's affair.

namespace score::shepherd {

namespace {

using namespace std::chrono_literals;

constexpr base::Duration kKillAgain = 10ms;     // descendants become children one generation a time
constexpr base::Duration kLeftoverGrace = 2s;   // unkillable (in the kernel) after this: go on
constexpr base::Duration kDrainGrace = 300ms;   // after all are killed, for the pipes to end
constexpr base::Duration kReachableCheck = 1s;  // only while there is no connection
constexpr int kUnreachableLimit = 3;            // checks in a row
constexpr base::Duration kDoneLinger = 15min;   // for a node daemon that does not come back

}  // namespace

void Shepherd::on_signal_descriptor() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGTERM) return quit();
  }
  // Before that a child that ended may be a task whose pid the spawner has not told yet.
  if (tasks_ && phase_ >= Phase::Running) tasks_->reap();
  if (phase_ == Phase::Draining) kill_leftovers();
}

// ---- output

void Shepherd::pump_output() {
  output_.pump(window_.room(),
               [this](OutputChunk chunk) { send_output(window_.push(std::move(chunk))); });
  update_output_watch();
}

void Shepherd::send_output(const OutputChunk& chunk) {
  if (!link_.is_connected()) return;
  wire::TaskOutput output;
  output.set_attempt(plan_->prepare.attempt());
  output.set_rank(chunk.rank);
  output.set_stream(chunk.stream);
  output.set_data(chunk.data);
  output.set_offset(chunk.offset);
  link_.send(output);
}

// A line of our own among the task's errors: "scored: node3: rank 5: ...".
void Shepherd::note(std::uint32_t task, const std::string& text) {
  const auto rank = plan_->rank_of(task);
  auto line = fmt::format("scored: {}: rank {}: {}\n", plan_->prepare.node_name(), rank,
                          base::escape_terminal(text, base::limits::kMaxErrorTextBytes));
  send_output(
      window_.push({.rank = rank, .stream = wire::STDERR, .data = std::move(line), .offset = 0}));
}

void Shepherd::update_output_watch() {
  loop_.change(output_.descriptor(), window_.room() > 0 ? EPOLLIN : 0U);
  if (phase_ == Phase::Draining) finish_if_drained();
}

// ---- the end

void Shepherd::drain() {
  phase_ = Phase::Draining;
  drain_start_ = base::monotonic_now();
  input_.close_all();
  say_if_pm_was_not_used();
  kill_leftovers();
}

void Shepherd::kill_leftovers() {
  if (leftovers_are_dead_) return;
  loop_.cancel(leftover_timer_);
  const bool gone = kill_children() == 0;
  if (!gone && base::monotonic_now() - drain_start_ < kLeftoverGrace) {
    leftover_timer_ = loop_.after(kKillAgain, [this] {
      tasks_->reap();
      kill_leftovers();
    });
    return;
  }
  leftovers_are_dead_ = true;
  remove_leftovers();  // before the end is told: then we may be killed at any time
  loop_.after(kDrainGrace, [this] {
    output_.limit_to_present();
    finish_if_drained();
  });
  finish_if_drained();
}

// Who ends well has removed its shared memory itself. To look all the same would read what each
// process of the host uses, once a node of a job: with 64 virtual nodes that is seconds.
void Shepherd::remove_leftovers() {
  if (pmix_) pmix_->clean_up();
  const bool ended_well = tasks_ && tasks_->all_ended_well() && !abort_;
  if (ended_well || began_ == base::WallTime()) return;
  remove_abandoned_memory("/dev/shm", began_);
}

void Shepherd::finish_if_drained() {
  if (!leftovers_are_dead_ || !output_.is_done() || phase_ != Phase::Draining) return;
  phase_ = Phase::Done;
  send_done();
  if (!link_.is_connected()) on_lost();
}

void Shepherd::send_done() {
  wire::ShepherdDone done;
  for (const auto& exit : tasks_->exits()) *done.add_exits() = exit;
  link_.send(done);
}

void Shepherd::quit() {
  spawner_.close();
  link_.flush();
  const auto deadline = base::monotonic_now() + kLeftoverGrace;
  while (kill_children() > 0 && base::monotonic_now() < deadline) {
    pollfd ended{.fd = signals_.get(), .events = POLLIN, .revents = 0};
    poll(&ended, 1, static_cast<int>(kKillAgain / 1ms));
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof info) == sizeof info) continue;
    reap_children();
  }
  remove_leftovers();
  loop_.stop();
}

// ---- without a node daemon

void Shepherd::on_lost() {
  loop_.cancel(reachable_timer_);
  unreachable_checks_ = 0;
  lost_since_ = base::monotonic_now();
  reachable_timer_ = loop_.after(kReachableCheck, [this] { check_reachable(); });
}

// If the socket's name is gone nobody can ever adopt us: the cluster was taken down. Then the tasks
// must not go on unseen.
void Shepherd::check_reachable() {
  reachable_timer_ = 0;
  if (link_.is_connected()) return;
  unreachable_checks_ = link_.is_unreachable() ? unreachable_checks_ + 1 : 0;
  const bool waits_for_nobody =
      phase_ == Phase::Done && base::monotonic_now() - lost_since_ > kDoneLinger;
  if (unreachable_checks_ >= kUnreachableLimit || waits_for_nobody) return quit();
  reachable_timer_ = loop_.after(kReachableCheck, [this] { check_reachable(); });
}

}  // namespace score::shepherd
