#include "scored/job/shepherd/shepherd.hpp"

#include "base/exit_codes.hpp"
#include "base/limits.hpp"
#include "base/model/model.hpp"
#include "base/os/log.hpp"
#include "scored/job/plan/checks.hpp"
#include "scored/job/plan/mpi_choice.hpp"
#include "scored/job/plan/pm_choice.hpp"
#include "scored/job/tasks/abandoned_memory.hpp"
#include "scored/job/tasks/children.hpp"

#include <algorithm>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <utility>

// All state that must survive the loss of the connection is stored here or in a part: exits, output
// that was not taken, the pending fence, input that was taken but not reported. Messages are sent
// without waiting for a reply; a resume sends them again.
//
// The job must end regardless of what the tasks do. A process that a task left behind is killed.
// One that escaped by passing a pipe to an unrelated process cannot delay the end, because after a
// grace period only the bytes that are in the pipes at that moment are still read. A slow reader
// may take as long as it needs for those.

namespace score::shepherd {

namespace {

using namespace std::chrono_literals;
namespace limits = base::limits;

constexpr int kSignalExit = SIGKILL;
constexpr base::Duration kDrainGrace = 300ms;  // for the pipes, after all processes are killed
constexpr base::Duration kTakenWithin = 1s;    // the end waits this long for a slow front end

template <class Message>
std::optional<Message> parse(const proto::InFrame& frame) {
  Message message;
  if (!message.ParseFromString(frame.payload)) return std::nullopt;
  return message;
}

std::uint32_t wire_phase(base::AttemptPhase phase) {
  return static_cast<std::uint32_t>(phase);
}

}  // namespace

Shepherd::Shepherd(EventLoop& loop, OutputPump output, ShepherdOptions options)
    : loop_(loop),
      link_(loop, std::move(options.listener), std::move(options.allowed)),
      spawner_(loop, std::move(options.spawner)),
      signals_(std::move(options.signals)),
      output_(loop, link_, std::move(output)),
      input_(loop, [this](std::uint64_t bytes) {
        input_taken_ += bytes;
        send_input_taken();
      }) {}

base::Status Shepherd::start() {
  // The launcher forked the spawner before it became this program: so far it is the only child.
  const auto children = children_of_this_process();
  if (children.size() == 1) group_ = children.front();
  auto watched =
      loop_.add(signals_.get(), EPOLLIN, [this](std::uint32_t) { on_signal_descriptor(); });
  if (!watched) return watched;
  watched = output_.start([this] {
    if (phase_ == Phase::Draining) finish_if_drained();
  });
  if (!watched) return watched;
  SpawnClient::Handlers spawning;
  watch_spawner(spawning);
  if (auto started = spawner_.start(std::move(spawning)); !started) return started;
  on_lost();
  return link_.start(
      {.frame = [this](const proto::InFrame& frame,
                       auto descriptors) { on_frame(frame, std::move(descriptors)); },
       .lost =
           [this] {
             on_lost();
             output_.queue_emptied();
           },
       .sent = [this] { output_.queue_emptied(); }});
}

void Shepherd::watch_spawner(SpawnClient::Handlers& spawning) {
  spawning.hello = [this](pid_t pid) {
    if (group_ == 0) group_ = pid;
    if (std::exchange(ready_owed_, false)) send_ready();
  };
  spawning.open_task = [this](std::uint32_t task) { return open_task(task); };
  spawning.forked = [this](std::uint32_t task, pid_t pid) { on_forked(task, pid); };
  spawning.all_forked = [this] { on_all_forked(); };
  spawning.failed = [this](const base::Error& why) { on_spawn_failed(why); };
}

void Shepherd::on_frame(const proto::InFrame& frame, std::vector<base::UniqueFd> descriptors) {
  using proto::FrameType;
  switch (frame.type) {
    case FrameType::ShepherdPrepare:
      return on_prepare(frame.payload);
    case FrameType::ShepherdResume:
      return on_resume();
    case FrameType::ShepherdEnd:
      return quit();
    case FrameType::StartTasks:
      return on_start();
    case FrameType::SignalTasks:
      if (auto message = parse<wire::SignalTasks>(frame)) on_signal(message->signal());
      return;
    case FrameType::TaskInput:
      if (auto message = parse<wire::TaskInput>(frame)) on_input(*message);
      return;
    case FrameType::TaskOutputTaken:
      if (auto message = parse<wire::TaskOutputTaken>(frame)) output_.taken(message->bytes());
      return;
    case FrameType::FenceDone:
      if (auto message = parse<wire::FenceDone>(frame); message && servers_) {
        servers_->fence_done(*message);
      }
      return;
    case FrameType::JobRelay:
      return on_relay(frame);
    case FrameType::ScratchServers:
      if (auto message = parse<wire::ScratchServers>(frame); message && volume_) {
        volume_->serve(*message);
      }
      return;
    case FrameType::ShepherdSweep:
      if (auto message = parse<wire::ShepherdSweep>(frame)) on_sweep(*message);
      return;
    case FrameType::TerminalSize:
      if (auto message = parse<wire::TerminalSize>(frame); message && stdio_) {
        stdio_->resize(message->rows(), message->columns());
      }
      return;
    case FrameType::ShepherdNetwork:
    case FrameType::PassedDescriptors:
    case FrameType::NetworkFailed:
      return on_network(frame, std::move(descriptors));
    default:
      base::log_warning("Ignored unexpected frame", base::kv("type", proto::name_of(frame.type)));
  }
}

void Shepherd::on_prepare(const std::string& payload) {
  if (phase_ != Phase::Preparing || plan_) return;
  auto plan = parse_plan(payload);
  if (!plan) return refuse(kExitError, plan.error().message());
  if (auto refusal = check_plan(*plan)) return refuse(refusal->exit_code, refusal->reason);
  const bool is_choice_free = plan->spec.mpi() == wire::LaunchSpec::AUTO;
  choose_mpi(*plan);
  if (plan->spec.net() == wire::LaunchSpec::PM) {
    auto variables = pm_variables(*plan);
    if (!variables) return refuse(kExitError, variables.error().context());
    for (auto& variable : *variables) plan->prepare.add_net_env(std::move(variable));
  }
  plan_ = std::move(*plan);
  output_.begin(plan_->prepare.attempt(), plan_->prepare.node_name());
  if (auto made = make_script(); !made) return refuse(kExitError, made.error().message());
  if (auto made = make_volume(); !made) return refuse(kExitError, made.error().message());
  make_servers();
  if (plan_->local_tasks() == 0) return finish_prepare();
  if (plan_->spec.mpi() == wire::LaunchSpec::PMIX)
    return servers_->start_pmix(prepare_bytes(*plan_));
  if (plan_->wants_pmix()) {
    auto offered = offer_pmix(is_choice_free);
    if (!offered) return refuse(kExitError, offered.error().message());
  }
  finish_prepare();
}

// A script runs also without scored-pmix, unless the user has requested PMIx. PMIx is offered even
// then, so that a task that connects ends the job; otherwise that task would run alone and assume
// that it is the whole program. In a job of one task this assumption is correct.
base::Status Shepherd::offer_pmix(bool is_optional) {
  const auto found = PmixProcess::find();
  if (!found && !is_optional) return found;
  if (!found && plan_->size == 1 && !plan_->can_spawn()) {
    plan_->spec.set_mpi(wire::LaunchSpec::PMI1);
    return {};
  }
  auto variables = servers_->offer_pmix(prepare_bytes(*plan_));
  if (!variables) return variables.error();
  if (!found) servers_->lack_pmix(found.error().context());
  for (auto& variable : *variables) plan_->prepare.add_pmix_env(std::move(variable));
  return {};
}

void Shepherd::make_servers() {
  MpiServers::Handlers handlers;
  handlers.pmix_ready = [this](const wire::PmixReady& ready) {
    if (phase_ != Phase::Preparing) return;
    *plan_->prepare.mutable_pmix_env() = ready.env();
    finish_prepare();
  };
  handlers.pmix_failed = [this](const std::string& why) { on_pmix_failed(why); };
  handlers.abort = [this](const MpiServers::Abort& abort) { abort_job(abort); };
  handlers.note = [this](std::uint32_t task, const std::string& text) { note(task, text); };
  handlers.initialised = [this](std::uint32_t task) {
    if (mpi_watch_) mpi_watch_->initialised(task);
  };
  handlers.spawn = [this](std::uint32_t task, PmiSpawn&& what, SpawnHub::Done done) {
    spawning_->request(task, std::move(what.programs), std::move(what.key_values),
                       [this, task, done = std::move(done)](const SpawnHub::Result& result) {
                         if (!result.reason.empty()) note(task, result.reason);
                         done(result);
                       });
  };
  handlers.world_ready = [this](std::uint32_t world, const std::string& reason) {
    if (!starting_ || starting_->world() != world) return;
    reason.empty() ? fork_world() : end_world(reason);
  };
  servers_.emplace(loop_, link_, *plan_, std::move(handlers));
}

void Shepherd::on_pmix_failed(const std::string& why) {
  if (phase_ == Phase::Preparing) return refuse(kExitError, why);
  if (phase_ < Phase::Draining) abort_job({plan_->rank_of(0), kExitError, why});
}

void Shepherd::finish_prepare() {
  awaits_volume_ = volume_ && !volume_->is_ready();
  if (awaits_volume_) return;
  if (plan_->local_tasks() > 0) {
    auto sent = spawner_.prepare(prepare_bytes(*plan_), plan_->can_spawn());
    if (!sent) return refuse(kExitError, sent.error().message());
  }
  make_parts();
  phase_ = Phase::Prepared;
  if (group_ != 0) return send_ready();
  ready_owed_ = true;
}

void Shepherd::make_parts() {
  tasks_.emplace(plan_->ranks, [this](std::uint32_t task, const wire::TaskExit& exit) {
    on_task_ended(task, exit);
  });
  stdio_.emplace(*plan_, output_.pump(), input_);
  mpi_watch_.emplace(loop_, *plan_, *tasks_,
                     [this](std::uint32_t task, const std::string& text) { note(task, text); });
  if (plan_->local_tasks() == 0) return;
  if (plan_->wants_pmi()) servers_->start_pmi();
  if (plan_->wants_network()) make_network();
  if (plan_->can_spawn()) make_spawning();
}

void Shepherd::make_network() {
  const auto& prepare = plan_->prepare;
  NetworkHub::Handlers handlers;
  handlers.wanted = [this] {
    wire::NetworkRequest request;
    request.set_attempt(plan_->prepare.attempt());
    link_.send(request);
  };
  handlers.report = [this](const wire::ShepherdNetwork& network) { link_.send(network); };
  handlers.pass = [this](const wire::PassedDescriptors& message, auto fds) {
    link_.send_descriptors(message, std::move(fds));
  };
  handlers.note = [this](std::uint32_t task, const std::string& text) { note(task, text); };
  handlers.broken = [this](const std::string& why) {
    abort_job({plan_->rank_of(0), kExitError, why});
  };
  network_.emplace(loop_,
                   NetworkHub::Job{prepare.attempt(),
                                   prepare.node_index(),
                                   {prepare.tasks_on_node().begin(), prepare.tasks_on_node().end()},
                                   plan_->distribution()},
                   std::move(handlers));
}

void Shepherd::on_network(const proto::InFrame& frame, std::vector<base::UniqueFd> descriptors) {
  if (!network_) return;
  if (frame.type == proto::FrameType::ShepherdNetwork) {
    if (auto network = parse<wire::ShepherdNetwork>(frame)) network_->prepare(std::move(*network));
  } else if (frame.type == proto::FrameType::NetworkFailed) {
    if (auto failed = parse<wire::NetworkFailed>(frame)) network_->fail(failed->reason());
  } else if (auto message = parse<wire::PassedDescriptors>(frame)) {
    network_->take_sockets(*message, std::move(descriptors));
  }
}

void Shepherd::refuse(int exit_code, const std::string& reason) {
  wire::ShepherdRefused refused;
  refused.set_exit_code(exit_code);
  refused.set_reason(base::escape_terminal(reason, limits::kMaxErrorTextBytes));
  link_.send(refused);
  quit();
}

void Shepherd::send_ready() {
  wire::ShepherdReady ready;
  ready.set_group(group_);
  link_.send(ready);
}

void Shepherd::on_start() {
  if (phase_ != Phase::Prepared) return;
  phase_ = Phase::Starting;
  began_ = base::wall_now() - 1s;  // file times of the kernel lag by some milliseconds
  if (plan_->local_tasks() > 0) {
    return spawner_.begin(0, static_cast<std::uint32_t>(plan_->members.size()));
  }
  on_all_forked();  // an allocation's node: it has a part of the volume but no task
  if (phase_ == Phase::Running) drain();
}

base::Result<std::vector<base::UniqueFd>> Shepherd::open_task(std::uint32_t task) {
  auto fds = stdio_->open_task(task);
  if (!fds) return fds;
  if (auto connected = servers_->connect(task, *fds); !connected) return connected.error();
  if (network_) {
    auto socket = network_->connect(task);
    if (!socket) return socket.error();
    fds->push_back(std::move(*socket));
  }
  return fds;
}

void Shepherd::on_forked(std::uint32_t task, pid_t pid) {
  tasks_->set_process(task, pid);
  output_.watch();
}

void Shepherd::on_all_forked() {
  if (phase_ == Phase::Running) return end_world("");
  phase_ = Phase::Running;
  input_.complete();
  for (const int signal : early_signals_) tasks_->signal_all(signal);
  early_signals_.clear();
  send_started();
  output_.watch();
  mpi_watch_->tasks_started();
  reap();
}

void Shepherd::send_started() {
  wire::ShepherdStarted started;
  for (const std::int64_t pid : tasks_->started_pids()) started.add_pids(pid);
  link_.send(started);
}

// This does nothing while a child that ended may be a task whose pid the spawner has not reported
// yet.
void Shepherd::reap() {
  if (!tasks_ || phase_ < Phase::Running || starting_) return;
  tasks_->reap();
  if (spawning_ && tasks_->none_runs()) spawning_->idle(tasks_->started_count());
}

void Shepherd::on_spawn_failed(const base::Error& why) {
  if (spawning_ && phase_ == Phase::Running) {
    if (!is_killed_) base::log_warning("Spawner ended", base::kv("err", why));
    return end_spawning();
  }
  if (phase_ != Phase::Starting) {
    // The spawner ended before it was needed, so Start will fail.
    if (!is_killed_) base::log_warning("Spawner ended", base::kv("err", why));
    return;
  }
  phase_ = Phase::Running;
  input_.complete();
  // The node daemon may have killed the whole cgroup, including the spawner, before this process
  // learns of the end.
  const bool is_gone = is_killed_ || why.is(base::Errc::Closed) || why.is(std::errc::broken_pipe);
  if (!is_gone) note(0, "cannot start tasks: " + why.message());
  tasks_->signal_all(SIGKILL);
  for (std::uint32_t task = 0; task < plan_->local_tasks(); ++task) {
    tasks_->give_up(task, is_gone ? 0 : kExitError, is_gone ? kSignalExit : 0);
  }
  tasks_->reap();
}

void Shepherd::on_signal(int signal) {
  if (signal == SIGKILL && volume_) volume_->abandon();
  if (signal < 1 || signal > SIGRTMAX || !tasks_) return;
  const bool is_starting = phase_ == Phase::Prepared || phase_ == Phase::Starting;
  if (!is_starting) {
    tasks_->signal_all(signal);
    if (signal == SIGKILL && spawning_ && phase_ == Phase::Running) end_spawning();
    return;
  }
  if (signal != SIGKILL) {
    early_signals_.insert(signal);
    return;
  }
  // The spawner may be frozen, so it is killed instead of asked.
  is_killed_ = true;
  spawner_.close();
  kill_children();
  phase_ = Phase::Starting;
  on_spawn_failed(base::fail(base::Errc::Cancelled, "start"));
}

void Shepherd::on_task_ended(std::uint32_t task, const wire::TaskExit& exit) {
  if (network_) network_->task_ended(task);
  const bool has_failed = exit.code() != 0 || exit.signal() != 0;
  servers_->task_ended(task, has_failed);
  wire::ShepherdTaskEnded ended;
  *ended.mutable_exit() = exit;
  link_.send(ended);
  if (tasks_->all_ended() && !has_room()) drain();
}

void Shepherd::on_input(const wire::TaskInput& input) {
  if (!plan_ || phase_ >= Phase::Draining) {  // no task reads it any more
    input_taken_ += input.data().size();
    return send_input_taken();
  }
  if (auto pushed = input_.push(input.data(), input.eof()); !pushed) {
    base::log_warning("Rejected input", base::kv("err", pushed.error()));
    link_.drop();
  }
}

void Shepherd::send_input_taken() {
  if (input_taken_ == 0 || !link_.is_connected()) return;
  wire::TaskInputTaken taken;
  taken.set_attempt(plan_ ? plan_->prepare.attempt() : 0);
  taken.set_bytes(std::exchange(input_taken_, 0));
  link_.send(taken);
}

void Shepherd::abort_job(const MpiServers::Abort& abort) {
  if (abort_) return;
  abort_.emplace();
  abort_->set_rank(abort.rank);
  abort_->set_code(abort.code);
  abort_->set_message(abort.message);
  abort_->set_left(abort.left);
  abort_->set_asked_ns(base::monotonic_now().time_since_epoch().count());
  link_.send(*abort_);
}

void Shepherd::note(std::uint32_t task, const std::string& text) {
  output_.note(plan_->rank_of(task), text);
}

void Shepherd::on_resume() {
  is_resumed_ = true;
  if (phase_ == Phase::Done && output_.is_owed()) phase_ = Phase::Draining;
  wire::ShepherdReport report;
  auto phase = base::AttemptPhase::Preparing;
  if (phase_ == Phase::Prepared) phase = base::AttemptPhase::Prepared;
  if (phase_ > Phase::Prepared) phase = base::AttemptPhase::Running;
  if (phase_ == Phase::Done) phase = base::AttemptPhase::Exited;
  report.set_phase(wire_phase(phase));
  report.set_user(getuid());
  report.set_group(group_);
  report.set_shepherd_pid(getpid());
  if (plan_) {
    report.set_attempt(plan_->prepare.attempt());
    report.set_node_index(plan_->prepare.node_index());
    *report.mutable_tasks_on_node() = plan_->prepare.tasks_on_node();
    *report.mutable_cores() = plan_->prepare.cores();
    report.set_memory_bytes(plan_->prepare.memory_bytes());
    report.set_distribution(plan_->prepare.distribution());
    report.set_restarts(plan_->prepare.restarts());
    report.set_scratch_bytes(plan_->prepare.scratch_bytes());
    // If a task has no pid yet, ShepherdStarted will report all of them.
    const auto pids = tasks_->started_pids();
    if (phase_ >= Phase::Running || pids.size() == plan_->ranks.size())
      report.mutable_pids()->Add(pids.begin(), pids.end());
    for (const auto& exit : tasks_->exits()) *report.add_exits() = exit;
  }
  link_.send(report);
  if (abort_) link_.send(*abort_);
  output_.resend();
  if (network_) network_->resume();
  if (servers_) servers_->resume();
  if (volume_) volume_->resume();
  send_input_taken();
  // A report without pids does not mean that the tasks were started, because this node may not have
  // any yet.
  if (spawning_ && phase_ == Phase::Running && tasks_->started_count() == 0) send_started();
  if (phase_ == Phase::Done) send_done();
}

void Shepherd::on_signal_descriptor() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGTERM) return quit();
  }
  reap();
  if (phase_ == Phase::Draining) kill_leftovers();
}

// ---- the end

void Shepherd::drain() {
  phase_ = Phase::Draining;
  leftover_kill_.emplace(base::monotonic_now());
  input_.close_all();
  const bool had_tasks = plan_->local_tasks() > 0;
  if (!abort_ && !is_killed_ && had_tasks)
    mpi_watch_->tasks_ended(!network_ || network_->has_served());
  kill_leftovers();
}

void Shepherd::kill_leftovers() {
  if (leftovers_are_dead_) return;
  loop_.cancel(leftover_timer_);
  const auto spared = volume_ ? volume_->processes() : std::vector<pid_t>();
  if (leftover_kill_->must_go_on(kill_children(spared), base::monotonic_now())) {
    leftover_timer_ = loop_.after(LeftoverKill::kAgain, [this] {
      reap();
      kill_leftovers();
    });
    return;
  }
  leftovers_are_dead_ = true;
  remove_leftovers();  // before Done: after it this process may be killed
  loop_.after(kDrainGrace, [this] {
    output_.limit_to_present();
    finish_if_drained();
  });
  finish_if_drained();
}

// A job that ends well has removed its shared memory itself. To search for it anyway would read
// which files each process of the host uses, once per node of the job; with 64 virtual nodes that
// takes seconds.
void Shepherd::remove_leftovers() {
  if (servers_) servers_->clean_up();
  script_.reset();
  const bool ended_well = tasks_ && tasks_->all_ended_well() && !abort_;
  if (ended_well || began_ == base::WallTime()) return;
  remove_abandoned_memory("/dev/shm", began_);
}

// The node daemon forgets the attempt after Done, so output that only the head or the node daemon
// has is lost if that daemon dies. For this reason Done waits until the front end has the output.
// It waits a second at most, or after a resume as long as necessary, because the head may die again
// before the front end has reconnected.
void Shepherd::finish_if_drained() {
  if (!has_drained() || phase_ != Phase::Draining) return;
  if (output_.is_owed() && (is_resumed_ || !is_output_overdue_)) {
    if (!std::exchange(awaits_taking_, true)) {
      loop_.after(kTakenWithin, [this] {
        is_output_overdue_ = true;
        finish_if_drained();
      });
    }
    return;
  }
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
  const LeftoverKill last(base::monotonic_now());
  while (last.must_go_on(kill_children(), base::monotonic_now())) {
    pollfd ended{.fd = signals_.get(), .events = POLLIN, .revents = 0};
    poll(&ended, 1, static_cast<int>(LeftoverKill::kAgain / 1ms));
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof info) == sizeof info) continue;
    reap_children();
  }
  remove_leftovers();
  if (volume_) {
    if (auto removed = volume_->remove(); !removed) {
      base::log_error("Cannot remove the volume", base::kv("err", removed.error()));
    }
    link_.flush();
  }
  loop_.stop();
}

// ---- without a node daemon

void Shepherd::on_lost() {
  loop_.cancel(reachable_timer_);
  lost_daemon_.emplace(base::monotonic_now());
  reachable_timer_ = loop_.after(LostDaemon::kCheckPeriod, [this] { check_reachable(); });
}

void Shepherd::check_reachable() {
  reachable_timer_ = 0;
  if (link_.is_connected()) return;
  const bool is_done = phase_ == Phase::Done || (phase_ == Phase::Draining && has_drained());
  // Other nodes may still use this node's part of a volume.
  const bool may_go = is_done && !volume_;
  if (lost_daemon_->check(link_.is_unreachable(), may_go, base::monotonic_now())) return quit();
  reachable_timer_ = loop_.after(LostDaemon::kCheckPeriod, [this] { check_reachable(); });
}

}  // namespace score::shepherd
