// This module is tested by shepherd_test.cpp and pmix_flow_test.cpp; tasks that programs start also
// by test_spawn.py, because they need real MPI libraries.
#include "scored/job/shepherd/job_parts.hpp"

#include "base/assert.hpp"
#include "base/exit_codes.hpp"
#include "base/limits.hpp"
#include "base/model/machine_fault.hpp"
#include "base/text/index_set.hpp"
#include "proto/frames/parse.hpp"
#include "scored/job/checkpoint/saved_contexts.hpp"
#include "scored/job/plan/mpi_choice.hpp"
#include "scored/job/plan/pm_choice.hpp"

#include <algorithm>
#include <signal.h>
#include <utility>

namespace score::shepherd {

namespace {

constexpr const char* kStartedIsRefused =
    "it has started an MPI program, which is no rank of this job and would wait for ever: start it "
    "with scrun or MPI_Comm_spawn";

}  // namespace

JobParts::JobParts(Services given, Handlers handlers) : services(given), up(std::move(handlers)) {}

void JobParts::note(std::uint32_t task, const std::string& text) {
  services.output.note(plan->rank_of(task), text);
}

// ---- preparation

std::optional<Refusal> JobParts::prepare(const std::string& payload) {
  const auto refused = [](const base::Error& why) {
    return Refusal{kExitError, why.message(), base::is_machine_fault(why)};
  };
  auto parsed = parse_plan(payload);
  if (!parsed) return refused(parsed.error());
  if (auto refusal = check_plan(*parsed)) return refusal;
  if (auto refusal = services.checkpoint.prepare(*parsed)) return refusal;
  const bool is_choice_free = parsed->spec.mpi() == wire::LaunchSpec::AUTO;
  if (auto good = check_mpi(*parsed); !good) return Refusal{kExitError, good.error().context()};
  choose_mpi(*parsed);
  if (parsed->spec.net() == wire::LaunchSpec::PM) {
    auto variables = pm_variables(*parsed);
    if (!variables) return Refusal{kExitError, variables.error().context()};
    for (auto& variable : *variables) parsed->prepare.add_net_env(std::move(variable));
  }
  plan = std::move(*parsed);
  services.output.begin(plan->prepare.attempt(), plan->prepare.node_name());
  if (auto made = make_script(); !made) return refused(made.error());
  if (auto made = make_volume(); !made) return refused(made.error());
  make_servers();
  if (plan->local_tasks() == 0 || !plan->wants_pmix()) return {};
  const bool is_optional = is_choice_free && plan->spec.mpi() == wire::LaunchSpec::BOTH;
  if (auto offered = offer_pmix(is_optional); !offered) {
    return refused(offered.error());
  }
  return {};
}

ShepherdAgent::Job JobParts::traits() const {
  const bool has_tasks = plan->local_tasks() > 0;
  return {.has_tasks = has_tasks,
          .can_spawn = has_tasks && plan->can_spawn(),
          .has_volume = volume.has_value()};
}

base::Status JobParts::make_script() {
  if (plan->spec.script().empty() || plan->local_tasks() == 0) return {};
  if (plan->restores()) return make_restored_script();
  const auto& program = plan->spec.programs(0);
  const auto temporary = find_variable(plan->spec, program, "TMPDIR").value_or("");
  auto made = ScriptFile::create(plan->spec.job(), program.argv(0), plan->spec.script(), temporary);
  if (!made) return made.error().with_context("cannot create the script");
  script.emplace(*std::move(made));
  plan->prepare.set_script_path(script->path());
  return {};
}

// The restored shell has the file open.
base::Status JobParts::make_restored_script() {
  const auto& image = services.checkpoint.image();
  auto made = ScriptFile::create_again(image ? image->script : "", plan->spec.script());
  if (!made) return made.error().with_context("cannot restore the script");
  script.emplace(*std::move(made));
  plan->prepare.set_script_path(script->path());
  return {};
}

// A step uses the volume of its job.
base::Status JobParts::make_volume() {
  auto& prepare = plan->prepare;
  std::string directory;
  if (prepare.scratch_bytes() > 0) {
    const base::AttemptId attempt(prepare.attempt());
    directory = VolumeDirectory::path_of(prepare.scratch_path(), {attempt, prepare.node_index()});
  } else if (!plan->spec.step().empty()) {
    directory = find_volume_of(prepare.scratch_path(), base::JobId(plan->spec.job()));
  }
  if (directory.empty()) return {};
  prepare.add_scratch_env("SCORE_SCRATCH=" + VolumeDirectory::link_of(directory));
  prepare.add_scratch_env("PARIO_VOLUME=" + VolumeDirectory::description_of(directory));
  if (prepare.scratch_bytes() == 0) return {};
  start_volume();
  return volume->begin();
}

void JobParts::start_volume() {
  JobVolume::Handlers handlers;
  handlers.listens = [this](const wire::ScratchReady& ready) { services.link.send(ready); };
  handlers.ready = [this] { up.event({Event::VolumeReady}); };
  handlers.failed = [this](const std::string& why) { up.event({Event::Refused, kExitError, why}); };
  handlers.sample = [this](const wire::ShepherdScratch& sample) { services.link.send(sample); };
  volume.emplace(services.loop, services.helpers, plan->prepare, plan->spec.scratch_key(),
                 std::move(handlers));
  services.helpers.set_lost([this] {
    if (!volume->is_abandoned()) abort("the programs of the volume were ended");
  });
  constexpr std::string_view kTransport = "PARIO_TRANSPORT=";
  for (const std::string_view variable : plan->spec.env()) {
    if (!variable.starts_with(kTransport)) continue;
    volume->set_transport(variable.substr(kTransport.size()));
  }
  plan->spec.clear_scratch_key();  // the tasks' side does not need it
}

void JobParts::make_servers() {
  MpiServers::Handlers handlers;
  handlers.pmix_failed = [this](const std::string& why) { up.event({Event::PmixFailed, 0, why}); };
  handlers.pmix_ended = [this] { up.event({Event::PmixEnded}); };
  handlers.abort = up.abort;
  handlers.note = [this](std::uint32_t task, const std::string& text) { note(task, text); };
  handlers.initialised = [this](std::uint32_t task) {
    if (mpi_watch) mpi_watch->initialised(task);
  };
  handlers.connected_twice = [this](std::uint32_t task) {
    if (!mpi_watch || !mpi_watch->has_several_mpis(task)) return;
    up.abort({plan->rank_of(task), 1, kStartedIsRefused});
  };
  handlers.spawn = [this](std::uint32_t task, PmiSpawn&& what, SpawnHub::Done done) {
    spawning->request(task, std::move(what.programs), std::move(what.key_values),
                      [this, task, done = std::move(done)](const SpawnHub::Result& result) {
                        if (!result.reason.empty()) note(task, result.reason);
                        done(result);
                      });
  };
  handlers.world_ready = [this](std::uint32_t world, const std::string& reason) {
    if (!starting || starting->world() != world) return;
    up.event({reason.empty() ? Event::WorldReady : Event::WorldFailed, 0, reason});
  };
  servers.emplace(services.loop, services.link, *plan, std::move(handlers));
}

// A script runs also without scored-pmix, unless the user has requested PMIx. PMIx is offered even
// then, so that a task that connects ends the job; otherwise that task would run alone and assume
// that it is the whole program. In a job of one task this assumption is correct.
base::Status JobParts::offer_pmix(bool is_optional) {
  const auto found = PmixProcess::find();
  if (!found && !is_optional) return found;
  if (!found && plan->size == 1 && !plan->can_spawn()) {
    plan->spec.set_mpi(wire::LaunchSpec::PMI1);
    return {};
  }
  auto variables = servers->offer_pmix(prepare_bytes(*plan));
  if (!variables) return variables.error();
  if (!found) servers->lack_pmix(found.error().context());
  for (auto& variable : *variables) plan->prepare.add_pmix_env(std::move(variable));
  if (plan->spec.mpi() == wire::LaunchSpec::PMIX) servers->begin_pmix();
  return {};
}

base::Status JobParts::make_tasks() {
  if (plan->local_tasks() > 0 && !plan->restores()) {
    if (plan->can_checkpoint()) services.spawner.keep_parent();
    auto sent = services.spawner.prepare(prepare_bytes(*plan), plan->can_spawn(),
                                         servers->take_pmix_descriptors());
    if (!sent) return sent;
  }
  tasks.emplace(plan->ranks,
                [this](std::uint32_t task, const wire::TaskExit& exit) { task_ended(task, exit); });
  stdio.emplace(*plan, services.output.pump(), services.input);
  mpi_watch.emplace(
      services.loop, *plan, *tasks,
      [this](std::uint32_t task, const std::string& text) { note(task, text); },
      [this](const std::string& why) { abort(why); });
  if (plan->local_tasks() == 0) return {};
  if (plan->wants_pmi()) servers->start_pmi();
  if (plan->wants_network()) make_network();
  if (plan->can_spawn()) make_spawning();
  return {};
}

void JobParts::make_network() {
  const auto& prepare = plan->prepare;
  NetworkHub::Handlers handlers;
  handlers.wanted = [this] {
    wire::NetworkRequest request;
    request.set_attempt(plan->prepare.attempt());
    services.link.send(request);
  };
  handlers.report = [this](const wire::ShepherdNetwork& report) { services.link.send(report); };
  handlers.pass = [this](const wire::PassedDescriptors& message, auto fds) {
    services.link.send_descriptors(message, std::move(fds));
  };
  handlers.note = [this](std::uint32_t task, const std::string& text) { note(task, text); };
  handlers.broken = [this](const std::string& why) { abort(why); };
  network.emplace(services.loop,
                  NetworkHub::Job{prepare.attempt(),
                                  prepare.node_index(),
                                  {prepare.tasks_on_node().begin(), prepare.tasks_on_node().end()},
                                  plan->distribution()},
                  std::move(handlers));
}

void JobParts::make_spawning() {
  SpawnHub::Handlers handlers;
  handlers.send = [this](wire::JobRelay&& message) {
    message.set_attempt(plan->prepare.attempt());
    services.link.send(message);
  };
  handlers.start = [this](Plan&& world) {
    starting = std::move(world);
    up.event({Event::WorldRequested});
  };
  handlers.closes = [this] { up.event({Event::RoomClosed}); };
  spawning.emplace(services.loop, *plan, std::move(handlers));
}

// ---- actions

void JobParts::carry_out(const ShepherdAgent::Action& action) {
  using ActionKind = ShepherdAgent::ActionKind;
  switch (action.what) {
    case ActionKind::TasksStarted:
      services.input.complete();
      send_started();
      services.output.watch();
      return mpi_watch->tasks_started();
    case ActionKind::SendStarted:
      return send_started();
    case ActionKind::FailStart:
      return fail_start(action.value != 0, action.text);
    case ActionKind::SignalTasks:
      return tasks->signal_all(action.value);
    case ActionKind::AbandonVolume:
      if (volume) volume->abandon();
      return;
    case ActionKind::Reap:
      tasks->reap();
      if (spawning && tasks->none_runs()) spawning->idle(tasks->started_count());
      return;
    case ActionKind::AbortJob:
      return abort(action.text);
    case ActionKind::CloseInput:
      services.input.close_all();
      if (action.value != 0) mpi_watch->tasks_ended(!network || network->has_served());
      return;
    default:
      carry_out_spawning(action);
  }
}

void JobParts::carry_out_spawning(const ShepherdAgent::Action& action) {
  using ActionKind = ShepherdAgent::ActionKind;
  switch (action.what) {
    case ActionKind::ServeWorld:
      if (!servers->add_world(*starting)) up.event({Event::WorldReady});
      return;
    case ActionKind::ForkWorld:
      return fork_world();
    case ActionKind::EndWorld:
      return end_world(action.text);
    case ActionKind::RefuseRoom:
      return spawning->lose(action.text);
    case ActionKind::GiveUpRoom:
      give_up(0, 0);
      return up.event({Event::TaskEnded});
    default:
      SCORE_ASSERT(false, "action {} without an effect", static_cast<int>(action.what));
  }
}

void JobParts::send_started() {
  wire::ShepherdStarted started;
  for (const std::int64_t pid : tasks->started_pids()) started.add_pids(pid);
  services.link.send(started);
}

// A spawner that has ended was killed with the job.
void JobParts::fail_start(bool is_gone, const std::string& why) {
  services.input.complete();
  if (!is_gone) note(0, "cannot start tasks: " + why);
  tasks->signal_all(SIGKILL);
  give_up(is_gone ? 0 : kExitError, is_gone ? SIGKILL : 0);
  tasks->reap();
}

// ---- tasks

base::Result<std::vector<base::UniqueFd>> JobParts::open_task(std::uint32_t task) {
  auto fds = stdio->open_task(task);
  if (!fds) return fds;
  if (auto connected = servers->connect(task, *fds); !connected) return connected.error();
  if (network) {
    auto socket = network->connect(task);
    if (!socket) return socket.error();
    fds->push_back(std::move(*socket));
  }
  services.checkpoint.opened(task, *fds);
  return fds;
}

std::string JobParts::why_not_saved() const {
  if (!tasks || tasks->none_runs()) return "its tasks do not run";
  const auto pids = tasks->running_pids();
  if (std::ranges::find(pids, 0) != pids.end()) return "some of its tasks have ended";
  return network ? network->why_not_saved() : std::string();
}

bool JobParts::is_quiet() const {
  return (!servers || servers->is_quiet()) && (!network || network->is_quiet());
}

void JobParts::describe(NodeImage& image) const {
  if (servers) image.pmi = servers->saved();
  const auto saved = network ? network->saved() : std::nullopt;
  if (!saved) return;
  image.network_key = saved->key;
  image.sockets = saved->sockets;
}

void JobParts::restore_tasks(const std::function<void(const base::Error&)>& failed) {
  const NodeImage& image = *services.checkpoint.image();
  if (auto good = servers->restore(image.pmi); !good) return failed(good.error());
  if (image.network_key == 0) return restore_with(failed);
  if (!network) {
    return failed(base::fail(base::Errc::Unsupported, "the saved tasks used PM, which is off"));
  }
  network->open_again([this, failed](const base::Status& opened) {
    if (!opened) return failed(opened.error());
    if (network->sockets().size() == services.checkpoint.image()->sockets.size()) {
      return restore_with(failed);
    }
    failed(base::fail(base::Errc::Unsupported, "the saved tasks used another kind of network"));
  });
}

void JobParts::restore_with(std::function<void(const base::Error&)> failed) {
  const bool has_network = services.checkpoint.image()->network_key != 0;
  services.checkpoint.restore(
      {.open = [this](std::uint32_t task) { return open_task(task); },
       .spawner = services.spawner,
       .sockets = has_network ? std::span(network->sockets()) : std::span<const base::UniqueFd>(),
       .arrived = [this](std::span<const pid_t> processes) { return take_restored(processes); },
       .failed = std::move(failed)});
}

base::Status JobParts::take_restored(std::span<const pid_t> processes) {
  const std::uint64_t key = services.checkpoint.image()->network_key;
  if (key == 0) return {};
  return network->take_contexts(contexts_of(processes, key));
}

void JobParts::give_up(int code, int signal) {
  for (std::uint32_t task = 0; task < plan->local_tasks(); ++task) {
    tasks->give_up(task, code, signal);
  }
}

void JobParts::task_ended(std::uint32_t task, const wire::TaskExit& exit) {
  if (network) network->task_ended(task);
  const bool has_failed = exit.code() != 0 || exit.signal() != 0;
  servers->task_ended(task, has_failed);
  wire::ShepherdTaskEnded ended;
  *ended.mutable_exit() = exit;
  services.link.send(ended);
  up.event({Event::TaskEnded});
}

// ---- frames

bool JobParts::take_frame(const proto::InFrame& frame, std::vector<base::UniqueFd>& descriptors) {
  using proto::FrameType;
  using proto::parse;
  switch (frame.type) {
    case FrameType::FenceDone:
      if (auto done = parse<wire::FenceDone>(frame); done && servers) {
        servers->fence_done(*done);
      }
      return true;
    case FrameType::ScratchServers:
      if (auto found = parse<wire::ScratchServers>(frame); found && volume) {
        volume->serve(*found);
      }
      return true;
    case FrameType::TerminalSize:
      if (auto size = parse<wire::TerminalSize>(frame); size && stdio) {
        stdio->resize(size->rows(), size->columns());
      }
      return true;
    case FrameType::ShepherdNetwork:
      if (auto ready = parse<wire::ShepherdNetwork>(frame); ready && network) {
        network->prepare(std::move(*ready));
      }
      return true;
    case FrameType::NetworkFailed:
      if (auto failed = parse<wire::NetworkFailed>(frame); failed && network) {
        network->fail(failed->reason());
      }
      return true;
    case FrameType::PassedDescriptors:
      if (auto passed = parse<wire::PassedDescriptors>(frame); passed && network) {
        network->take_sockets(*passed, std::move(descriptors));
      }
      return true;
    case FrameType::ShepherdStacks:
      if (auto request = parse<wire::ShepherdStacks>(frame); request && tasks) {
        read_stacks(*request);
      }
      return true;
    default:
      return false;
  }
}

// Tasks that have ended, or never started, are left out.
void JobParts::read_stacks(const wire::ShepherdStacks& request) {
  if (!stacks) {
    stacks.emplace(services.loop,
                   [this](const wire::ShepherdStacksRead& answer) { services.link.send(answer); });
  }
  const auto wanted = base::IndexSet::parse(request.ranks(), base::limits::kMaxTasksPerJob);
  const auto pids = tasks->running_pids();
  std::vector<StackQuery::Task> found;
  for (std::uint32_t task = 0; task < pids.size(); ++task) {
    const std::uint32_t rank = plan->rank_of(task);
    const bool is_wanted = request.ranks().empty() || (wanted && wanted->contains(rank));
    if (is_wanted && pids[task] > 0) found.push_back({rank, pids[task]});
  }
  stacks->begin(request, found);
}

// Requests that arrive before this node's tasks have started are repeated by their senders. Other
// nodes may ask until the job's end, because their messages or the answers may have been lost.
void JobParts::relay(const wire::JobRelay& message, bool takes_worlds) {
  if (!servers) return;
  if (!message.has_spawn()) return servers->relay(message);
  if (takes_worlds) spawning->receive(message.node_index(), message.spawn());
}

// ---- further worlds

void JobParts::fork_world() {
  const auto& members = starting->members;
  if (members.empty()) return up.event({Event::AllForked});
  if (auto sent = services.spawner.prepare(prepare_bytes(*starting), true); !sent) {
    return up.event({Event::WorldFailed, 0, sent.error().message()});
  }
  services.spawner.begin(members.front(), static_cast<std::uint32_t>(members.size()));
}

// Some tasks of the world may already run on other nodes. In that case the job cannot continue.
void JobParts::end_world(const std::string& reason) {
  const Plan world = std::move(*starting);
  starting.reset();
  if (!reason.empty()) {
    up.abort({world.prepare.world().parent(), kExitError, "cannot start tasks: " + reason});
  } else if (!world.members.empty()) {
    send_started();
    services.output.watch();
  }
  spawning->started(world.world(), reason);
}

}  // namespace score::shepherd
