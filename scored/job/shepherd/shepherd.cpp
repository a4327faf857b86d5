#include "scored/job/shepherd/shepherd.hpp"

#include "base/exit_codes.hpp"
#include "base/limits.hpp"
#include "base/model/machine_fault.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "proto/convert/convert.hpp"
#include "proto/frames/parse.hpp"
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

using namespace std::chrono_literals;
namespace limits = base::limits;

namespace {

constexpr const char* kSharedMemory = "/dev/shm";

}  // namespace

Shepherd::Shepherd(EventLoop& loop, OutputPump output, ShepherdOptions options)
    : loop_(loop),
      link_(loop, std::move(options.listener), std::move(options.allowed)),
      spawner_(loop, options.restores ? base::UniqueFd() : std::move(options.spawner)),
      has_helpers_(static_cast<bool>(options.helpers)),
      helpers_(loop, options.outside != 0 ? base::UniqueFd() : std::move(options.helpers)),
      signals_(std::move(options.signals)),
      outside_(options.outside),
      checkpoint_(loop, [this](const auto& message) { link_.send(message); },
                  {std::move(options.helpers), std::move(options.spawner)}),
      output_(loop, link_, std::move(output)),
      input_(loop,
             [this](std::uint64_t bytes) {
               input_taken_ += bytes;
               send_input_taken();
             }),
      job_({loop, link_, spawner_, helpers_, output_, input_, checkpoint_},
           {.event = [this](const ShepherdAgent::Input& event) { handle(event); },
            .abort = [this](const MpiServers::Abort& abort) { abort_job(abort); }}) {}

base::Status Shepherd::start() {
  // The launcher forked the spawner, and then perhaps C, before it became this program. So far
  // there are no other children.
  const auto children = children_of_this_process();
  if (children.size() == (has_helpers_ ? 2 : 1)) {
    // scored-checkpoint was forked first, so that the tasks have greater process ids.
    const bool is_first = outside_ != 0;
    if (has_helpers_) helper_spawner_ = is_first ? children.front() : children.back();
    const pid_t other = is_first ? children.back() : children.front();
    if (!checkpoint_.restores()) handle({Event::SpawnerFound, other});
  }
  auto watched =
      loop_.add(signals_.get(), EPOLLIN, [this](std::uint32_t) { on_signal_descriptor(); });
  if (!watched) return watched;
  if (watched = output_.start([this] { handle({Event::OutputMoved}); }); !watched) return watched;
  if (auto started = spawner_.start(spawner_handlers()); !started) return started;
  handle({Event::DaemonLost});
  return link_.start(
      {.frame = [this](const proto::InFrame& frame,
                       auto descriptors) { on_frame(frame, std::move(descriptors)); },
       .lost =
           [this] {
             handle({Event::DaemonLost});
             output_.queue_emptied();
           },
       .sent = [this] { output_.queue_emptied(); }});
}

// The spawner also ends when the node daemon has killed the whole cgroup, before this process
// learns of the end.
SpawnClient::Handlers Shepherd::spawner_handlers() {
  SpawnClient::Handlers handlers;
  handlers.hello = [this](pid_t pid) { handle({Event::SpawnerFound, pid}); };
  handlers.open_task = [this](std::uint32_t task) { return job_.open_task(task); };
  handlers.ended = [this](const SpawnReply& report) { on_task_ended(report); };
  handlers.forked = [this](std::uint32_t task, pid_t pid) {
    job_.tasks->set_process(task, pid);
    output_.watch();
  };
  handlers.all_forked = [this] { handle({Event::AllForked}); };
  handlers.failed = [this](const base::Error& why) {
    const bool has_ended = why.is(base::Errc::Closed) || why.is(std::errc::broken_pipe);
    handle({Event::SpawnerFailed, has_ended ? 1 : 0, why.message()});
  };
  return handlers;
}

void Shepherd::handle(const ShepherdAgent::Input& event) {
  const ShepherdAgent::Facts facts{.all_ended = job_.tasks && job_.tasks->all_ended(),
                                   .output_read = output_.is_done(),
                                   .output_owed = output_.is_owed()};
  for (const auto& action : agent_.on(event, facts, base::monotonic_now())) carry_out(action);
}

void Shepherd::carry_out(const ShepherdAgent::Action& action) {
  using ActionKind = ShepherdAgent::ActionKind;
  switch (action.what) {
    case ActionKind::PrepareTasks:
      return prepare_tasks();
    case ActionKind::SendReady:
      return send_ready();
    case ActionKind::SendRefused:
      return send_refused({action.value, action.text, action.may_retry});
    case ActionKind::BeginTasks:
      return begin_tasks();
    case ActionKind::CloseSpawner:
      return spawner_.close();
    case ActionKind::KillChildren:
      kill_children();
      return;
    case ActionKind::LogSpawner:
      return base::log_warning("Spawner ended", base::kv("err", action.text));
    case ActionKind::SendAbort:
      return link_.send(*abort_);
    case ActionKind::KillLeftovers:
      return kill_leftovers();
    case ActionKind::RemoveLeftovers:
      return remove_leftovers();
    case ActionKind::LimitOutput:
      output_.limit_to_present();
      return handle({Event::OutputMoved});
    case ActionKind::SendReport:
      return send_report(action.value);
    case ActionKind::SendDone:
      return send_done();
    case ActionKind::StartTimer:
      return start_timer(static_cast<Event>(action.value));
    case ActionKind::Quit:
      return quit();
    default:
      job_.carry_out(action);
  }
}

void Shepherd::on_frame(const proto::InFrame& frame, std::vector<base::UniqueFd> descriptors) {
  using proto::FrameType;
  using proto::parse;
  switch (frame.type) {
    case FrameType::ShepherdPrepare:
      if (agent_.awaits_plan()) on_prepare(frame.payload);
      return;
    case FrameType::ShepherdResume:
      return handle(
          {Event::Resume, job_.tasks ? static_cast<int>(job_.tasks->started_count()) : 0});
    case FrameType::ShepherdEnd:
      return handle({Event::End});
    case FrameType::StartTasks:
      return handle({Event::Start});
    case FrameType::SignalTasks:
      if (auto message = parse<wire::SignalTasks>(frame)) {
        handle({Event::Signal, message->signal()});
      }
      return;
    case FrameType::TaskInput:
      if (auto message = parse<wire::TaskInput>(frame)) on_input(*message);
      return;
    case FrameType::TaskOutputTaken:
      if (auto message = parse<wire::TaskOutputTaken>(frame)) output_.taken(message->bytes());
      return;
    case FrameType::TaskOutputRefused:
      if (auto message = parse<wire::TaskOutputRefused>(frame)) on_refused(*message);
      return;
    case FrameType::JobRelay:
      if (auto message = parse<wire::JobRelay>(frame)) {
        job_.relay(*message, agent_.takes_worlds());
      }
      return;
    case FrameType::ShepherdCheckpoint:
      if (auto order = parse<wire::ShepherdCheckpoint>(frame)) checkpoint_.order(*order);
      return;
    case FrameType::ShepherdSweep:
      if (auto message = parse<wire::ShepherdSweep>(frame); message && agent_.awaits_plan()) {
        on_sweep(*message);
      }
      return;
    default:
      if (job_.take_frame(frame, descriptors)) return;
      base::log_warning("Ignored unexpected frame", base::kv("type", proto::name_of(frame.type)));
  }
}

// ---- events

// The report comes from a process of the user, who can only spoil the account of the own tasks.
void Shepherd::on_task_ended(const SpawnReply& report) {
  const auto count = [](std::int32_t number) {
    return static_cast<std::uint64_t>(std::max(number, 0));
  };
  base::Usage usage;
  usage.cpu_user = std::chrono::milliseconds(count(report.pids[0]));
  usage.cpu_system = std::chrono::milliseconds(count(report.pids[1]));
  usage.memory_peak = base::Bytes(count(report.pids[2]) * 1024);
  usage.page_faults = count(report.pids[3]);
  const bool is_signal = report.count != 0;
  const int value = std::clamp(report.error, 0, is_signal ? SIGRTMAX : 255);
  job_.tasks->reaped(report.pid, is_signal ? 0 : value, is_signal ? value : 0, usage);
}

void Shepherd::on_prepare(const std::string& payload) {
  if (auto refusal = job_.prepare(payload)) {
    return handle({Event::Refused, refusal->exit_code, refusal->reason, {}, refusal->may_retry});
  }
  handle({.event = Event::Planned, .job = job_.traits()});
}

void Shepherd::on_sweep(const wire::ShepherdSweep& order) {
  remove_abandoned_memory(kSharedMemory, base::WallTime());
  const SweepResult swept = order.path().empty() ? SweepResult() : sweep_volumes(order.path());
  wire::ShepherdSwept done;
  done.set_removed(swept.removed);
  done.set_left(base::escape_terminal(swept.left, limits::kMaxErrorTextBytes));
  link_.send(done);
  handle({Event::End});
}

void Shepherd::on_refused(const wire::TaskOutputRefused& message) {
  handle({Event::OutputRefused});
  if (message.repeat()) output_.resend();
}

void Shepherd::on_input(const wire::TaskInput& input) {
  if (!agent_.takes_input()) {
    input_taken_ += input.data().size();
    return send_input_taken();
  }
  if (auto pushed = input_.push(input.data(), input.eof()); !pushed) {
    base::log_warning("Rejected input", base::kv("err", pushed.error()));
    link_.drop();
  }
}

void Shepherd::on_signal_descriptor() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGTERM) return handle({Event::End});
  }
  handle({Event::ChildEnded});
}

void Shepherd::abort_job(const MpiServers::Abort& abort) {
  if (!abort_) {
    abort_.emplace();
    abort_->set_rank(abort.rank);
    abort_->set_code(abort.code);
    abort_->set_message(abort.message);
    abort_->set_left(abort.left);
    abort_->set_asked_ns(base::monotonic_now().time_since_epoch().count());
  }
  handle({Event::Abort});
}

void Shepherd::start_timer(Event event) {
  auto& timer = timers_[event];
  loop_.cancel(timer);
  timer = loop_.after(ShepherdAgent::delay_of(event), [this, event] {
    if (event != Event::DaemonCheck) return handle({event});
    if (!link_.is_connected()) handle({event, link_.is_unreachable() ? 1 : 0});
  });
}

// ---- actions

void Shepherd::prepare_tasks() {
  if (auto made = job_.make_tasks(); !made) {
    return handle({Event::Refused,
                   kExitError,
                   made.error().message(),
                   {},
                   base::is_machine_fault(made.error())});
  }
  checkpoint_.begin({.plan = *job_.plan,
                     .parent = [this] { return agent_.group(); },
                     .tasks = [this] { return job_.tasks->running_pids(); },
                     .why_not = [this] { return job_.why_not_saved(); },
                     .is_quiet = [this] { return job_.is_quiet(); },
                     .describe = [this](NodeImage& image) { job_.describe(image); }});
  if (const auto& image = checkpoint_.image()) handle({Event::SpawnerFound, image->parent});
  if (outside_ != 0) job_.tasks->set_parent(agent_.group());
  handle({Event::TasksPrepared});
}

void Shepherd::begin_tasks() {
  began_ = base::wall_now() - 1s;  // file times of the kernel lag by some milliseconds
  if (job_.plan->local_tasks() == 0) return;
  if (checkpoint_.image()) {
    return job_.restore_tasks([this](const base::Error& why) {
      handle({Event::SpawnerFailed, 0, why.message()});
    });
  }
  spawner_.begin(0, static_cast<std::uint32_t>(job_.plan->members.size()));
}

void Shepherd::kill_leftovers() {
  const std::vector<pid_t> spared{helper_spawner_};  // other nodes may still use the volume
  handle({Event::LeftoversKilled, static_cast<int>(kill_children(spared))});
}

// A job that ends well has removed its shared memory itself.
void Shepherd::remove_leftovers() {
  if (job_.servers) job_.servers->clean_up();
  job_.script.reset();
  const bool ended_well = job_.tasks && job_.tasks->all_ended_well() && !abort_;
  if (ended_well || began_ == base::WallTime()) return;
  remove_abandoned_memory(kSharedMemory, began_);
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
  if (job_.volume) {
    if (auto removed = job_.volume->remove(); !removed) {
      base::log_error("Cannot remove the volume", base::kv("err", removed.error()));
    }
    link_.flush();
  }
  loop_.stop();
}

// ---- messages to the node daemon

void Shepherd::send_ready() {
  wire::ShepherdReady ready;
  ready.set_group(outside_ != 0 ? 0 : agent_.group());
  ready.set_reads_stacks(true);
  link_.send(ready);
}

void Shepherd::send_refused(const Refusal& why) {
  wire::ShepherdRefused refused;
  refused.set_exit_code(why.exit_code);
  refused.set_reason(base::escape_terminal(why.reason, limits::kMaxErrorTextBytes));
  refused.set_may_retry(why.may_retry);
  link_.send(refused);
}

void Shepherd::send_report(int phase) {
  wire::ShepherdReport report;
  report.set_phase(static_cast<std::uint32_t>(phase));
  report.set_user(getuid());
  report.set_group(outside_ != 0 ? 0 : agent_.group());
  report.set_shepherd_pid(outside_ != 0 ? outside_ : getpid());
  report.set_reads_stacks(true);
  if (job_.plan) {
    const auto& prepare = job_.plan->prepare;
    report.set_attempt(prepare.attempt());
    report.set_node_index(prepare.node_index());
    *report.mutable_tasks_on_node() = prepare.tasks_on_node();
    *report.mutable_cores() = prepare.cores();
    report.set_memory_bytes(prepare.memory_bytes());
    report.set_distribution(prepare.distribution());
    report.set_restarts(prepare.restarts());
    report.set_scratch_bytes(prepare.scratch_bytes());
  }
  if (job_.tasks) {
    // If a task has no pid yet, ShepherdStarted will report all of them.
    const auto pids = job_.tasks->started_pids();
    const bool has_started = agent_.phase() >= ShepherdAgent::Phase::Running;
    if (has_started || pids.size() == job_.plan->ranks.size())
      report.mutable_pids()->Add(pids.begin(), pids.end());
    for (const auto& exit : job_.tasks->exits()) *report.add_exits() = exit;
    *report.mutable_usage() = proto::to_wire(job_.tasks->usage());
  }
  link_.send(report);
  if (abort_) link_.send(*abort_);
  output_.resend();
  if (job_.network) job_.network->resume();
  if (job_.servers) job_.servers->resume();
  if (job_.volume) job_.volume->resume();
  send_input_taken();
}

void Shepherd::send_input_taken() {
  if (input_taken_ == 0 || !link_.is_connected()) return;
  wire::TaskInputTaken taken;
  taken.set_attempt(job_.plan ? job_.plan->prepare.attempt() : 0);
  taken.set_bytes(std::exchange(input_taken_, 0));
  link_.send(taken);
}

void Shepherd::send_done() {
  wire::ShepherdDone done;
  for (const auto& exit : job_.tasks->exits()) *done.add_exits() = exit;
  *done.mutable_usage() = proto::to_wire(job_.tasks->usage());
  link_.send(done);
}

}  // namespace score::shepherd
