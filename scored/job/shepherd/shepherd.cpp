#include "scored/job/shepherd/shepherd.hpp"

#include "base/exit_codes.hpp"
#include "base/limits.hpp"
#include "base/model/model.hpp"
#include "base/os/log.hpp"
#include "scored/job/plan/checks.hpp"
#include "scored/job/plan/pm_choice.hpp"
#include "scored/job/plan/process_mapping.hpp"
#include "scored/job/tasks/children.hpp"

#include <algorithm>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

// Everything that must survive the loss of the connection is state here: exits, output not taken,
// the fence under way, input taken but not told. Sending is fire and forget; a resume sends it
// again.

namespace score::shepherd {

namespace {

using namespace std::chrono_literals;
namespace limits = base::limits;

constexpr int kSignalExit = SIGKILL;

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
      output_(std::move(output)),
      window_(limits::kIoWindowBytes),
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
  watched = loop_.add(output_.descriptor(), 0, [this](std::uint32_t) { pump_output(); });
  if (!watched) return watched;
  SpawnClient::Handlers spawning;
  spawning.hello = [this](pid_t pid) {
    if (group_ == 0) group_ = pid;
    if (std::exchange(ready_owed_, false)) send_ready();
  };
  spawning.open_task = [this](std::uint32_t task) { return open_task(task); };
  spawning.forked = [this](std::uint32_t task, pid_t pid) { on_forked(task, pid); };
  spawning.all_forked = [this] { on_all_forked(); };
  spawning.failed = [this](const base::Error& why) { on_spawn_failed(why); };
  if (auto started = spawner_.start(std::move(spawning)); !started) return started;
  on_lost();
  return link_.start(
      {.frame = [this](const proto::InFrame& frame,
                       auto descriptors) { on_frame(frame, std::move(descriptors)); },
       .lost = [this] { on_lost(); }});
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
      if (auto message = parse<wire::TaskOutputTaken>(frame)) window_.taken(message->bytes());
      return update_output_watch();
    case FrameType::FenceDone:
      if (auto message = parse<wire::FenceDone>(frame)) on_fence_done(*message);
      return;
    case FrameType::JobRelay:
      return on_relay(frame.payload);
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
      base::log_warning("ignore frame", base::kv("type", proto::name_of(frame.type)));
  }
}

void Shepherd::on_prepare(const std::string& payload) {
  if (phase_ != Phase::Preparing || plan_) return;
  auto plan = parse_plan(payload);
  if (!plan) return refuse(kExitError, plan.error().message());
  if (auto refusal = check_plan(*plan)) return refuse(refusal->exit_code, refusal->reason);
  choose_mpi(*plan);
  if (plan->spec.net() == wire::LaunchSpec::PM) {
    auto variables = pm_variables(*plan);
    if (!variables) return refuse(kExitError, variables.error().context());
    for (auto& variable : *variables) plan->prepare.add_net_env(std::move(variable));
  }
  plan_ = std::move(*plan);
  if (plan_->wants_pmix()) return start_pmix();
  finish_prepare();
}

std::string Shepherd::prepare_bytes() const {
  auto prepare = plan_->prepare;
  prepare.set_spec(plan_->spec.SerializeAsString());
  return prepare.SerializeAsString();
}

void Shepherd::finish_prepare() {
  if (auto sent = spawner_.prepare(prepare_bytes()); !sent)
    return refuse(kExitError, sent.error().message());
  make_parts();
  phase_ = Phase::Prepared;
  if (group_ != 0) return send_ready();
  ready_owed_ = true;
}

void Shepherd::make_parts() {
  tasks_.emplace(plan_->ranks, [this](std::uint32_t task, const wire::TaskExit& exit) {
    on_task_ended(task, exit);
  });
  stdio_.emplace(*plan_, output_, input_);
  if (plan_->wants_pmi()) make_pmi();
  if (plan_->wants_network()) make_network();
}

void Shepherd::make_pmi() {
  PmiJob job{.name = fmt::format("kvs_{}", plan_->prepare.attempt()),
             .size = plan_->size,
             .local_tasks = plan_->local_tasks(),
             .process_mapping = process_mapping(plan_->nodes_of_ranks())};
  PmiHub::Handlers handlers;
  handlers.fence = [this](const PmiActions::Fence& fence) { send_fence(fence); };
  handlers.abort = [this](const PmiActions::Abort& abort) {
    abort_job(plan_->rank_of(abort.task), abort.code, abort.message);
  };
  handlers.note = [this](std::uint32_t task, const std::string& text) { note(task, text); };
  handlers.initialised = [this](std::uint32_t task) { look_at_mpi(task); };
  pmi_.emplace(loop_, std::move(job), std::move(handlers));
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
  began_ = base::wall_now() - 1s;  // the kernel's time of a file is some milliseconds behind
  spawner_.begin(plan_->local_tasks());
}

base::Result<std::vector<base::UniqueFd>> Shepherd::open_task(std::uint32_t task) {
  auto fds = stdio_->open_task(task);
  if (!fds) return fds;
  if (pmi_) {
    auto socket = pmi_->connect(task);
    if (!socket) return socket.error();
    fds->push_back(std::move(*socket));
  }
  if (network_) {
    auto socket = network_->connect(task);
    if (!socket) return socket.error();
    fds->push_back(std::move(*socket));
  }
  return fds;
}

void Shepherd::on_forked(std::uint32_t task, pid_t pid) {
  tasks_->set_process(task, pid);
  update_output_watch();
}

void Shepherd::on_all_forked() {
  phase_ = Phase::Running;
  input_.complete();
  for (const int signal : early_signals_) tasks_->signal_all(signal);
  early_signals_.clear();
  wire::ShepherdStarted started;
  for (const std::int64_t pid : tasks_->pids()) started.add_pids(pid);
  link_.send(started);
  update_output_watch();
  tasks_->reap();
}

void Shepherd::on_spawn_failed(const base::Error& why) {
  if (phase_ != Phase::Starting) {
    // It is gone before it was needed; whoever says Start will hear of it.
    if (!is_killed_) base::log_warning("spawner ended", base::kv("err", why));
    return;
  }
  phase_ = Phase::Running;
  input_.complete();
  // The node daemon may have killed the whole cgroup, the spawner in it, before we hear of the end.
  const bool is_gone = is_killed_ || why.is(base::Errc::Closed) || why.is(std::errc::broken_pipe);
  if (!is_gone) note(0, "cannot start tasks: " + why.message());
  tasks_->signal_all(SIGKILL);
  for (std::uint32_t task = 0; task < plan_->local_tasks(); ++task) {
    tasks_->give_up(task, is_gone ? 0 : kExitError, is_gone ? kSignalExit : 0);
  }
  tasks_->reap();
}

void Shepherd::on_signal(int signal) {
  if (signal < 1 || signal > SIGRTMAX || !tasks_) return;
  const bool is_starting = phase_ == Phase::Prepared || phase_ == Phase::Starting;
  if (!is_starting) return tasks_->signal_all(signal);
  if (signal != SIGKILL) {
    early_signals_.insert(signal);
    return;
  }
  // The spawner may be frozen: it is killed, not asked.
  is_killed_ = true;
  spawner_.close();
  kill_children();
  phase_ = Phase::Starting;
  on_spawn_failed(base::fail(base::Errc::Cancelled, "start"));
}

void Shepherd::on_task_ended(std::uint32_t task, const wire::TaskExit& exit) {
  if (network_) network_->task_ended(task);
  const bool has_failed = exit.code() != 0 || exit.signal() != 0;
  if (pmi_) pmi_->task_ended(task, has_failed);
  if (pmix_ && !has_failed && pmix_->was_initialised(task)) {
    abort_job(exit.rank(), 1, "ended without MPI_Finalize", true);
  }
  wire::ShepherdTaskEnded ended;
  *ended.mutable_exit() = exit;
  link_.send(ended);
  if (tasks_->all_ended()) drain();
}

void Shepherd::on_input(const wire::TaskInput& input) {
  if (!plan_ || phase_ >= Phase::Draining) {  // nobody reads it any more
    input_taken_ += input.data().size();
    return send_input_taken();
  }
  if (auto pushed = input_.push(input.data(), input.eof()); !pushed) {
    base::log_warning("refuse input", base::kv("err", pushed.error()));
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

void Shepherd::on_fence_done(const wire::FenceDone& done) {
  if (pmix_) pmix_->fence_done(done.sequence(), done.key_values());
  if (!pmi_) return;
  auto taken = pmi_->fence_done(done.sequence(), done.key_values());
  if (!taken) base::log_warning("ignore fence", base::kv("err", taken.error()));
}

void Shepherd::send_fence(const PmiActions::Fence& fence) {
  wire::FenceEnter enter;
  enter.set_attempt(plan_->prepare.attempt());
  enter.set_sequence(fence.sequence);
  enter.set_key_values(fence.key_values);
  link_.send(enter);
}

void Shepherd::on_resume() {
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
    // Who has none yet: ShepherdStarted will tell them all.
    const auto pids = tasks_->pids();
    if (std::ranges::find(pids, 0) == pids.end())
      report.mutable_pids()->Add(pids.begin(), pids.end());
    for (const auto& exit : tasks_->exits()) *report.add_exits() = exit;
  }
  link_.send(report);
  if (abort_) link_.send(*abort_);
  for (const auto& chunk : window_.held()) send_output(chunk);
  if (network_) network_->resume();
  if (pmi_ && pmi_->pending_fence()) send_fence(*pmi_->pending_fence());
  if (pmix_ && pmix_->pending_fence()) send_fence(*pmix_->pending_fence());
  send_input_taken();
  if (phase_ == Phase::Done) send_done();
}

}  // namespace score::shepherd
