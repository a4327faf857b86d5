// This module is tested by shepherd_test.cpp and pmix_flow_test.cpp.
#include "scored/job/shepherd/mpi_servers.hpp"

#include "base/exit_codes.hpp"
#include "base/os/log.hpp"
#include "base/os/spawn.hpp"
#include "scored/job/plan/mpi_choice.hpp"
#include "scored/job/plan/process_mapping.hpp"
#include "scored/job/pmix/client_env.hpp"
#include "scored/job/pmix/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace score::shepherd {

using namespace std::string_view_literals;

namespace {

// A node without PMIx contributes this mark, its name and a zero byte to the first fence of a job
// whose tasks may use PMIx. The head concatenates the nodes' contributions, and libpmix writes
// nothing similar.
constexpr auto kLackMark = "\0scored: no PMIx here\0"sv;
constexpr std::uint64_t kFirstFence = 1;

// Returns the nodes whose marks are in the contributions, as "node01 has" or "node01 and 2 more
// nodes have". The result is empty if there is no mark.
std::string nodes_in_lack(std::string_view contributions) {
  std::string first;
  std::size_t count = 0;
  for (auto at = contributions.find(kLackMark); at != contributions.npos;
       at = contributions.find(kLackMark, at)) {
    at += kLackMark.size();
    if (count++ == 0) first = contributions.substr(at, contributions.find('\0', at) - at);
  }
  if (count == 0) return "";
  if (count == 1) return first + " has";
  return fmt::format("{} and {} more {} have", first, count - 1, count == 2 ? "node" : "nodes");
}

// Applies MPI's info key `path`. A program that none of the directories has is looked for as usual.
// The search takes place on the parent's node, and relative names begin at the job's directory.
void search_programs(PmiSpawn& what, const std::string& directory) {
  for (std::size_t i = 0; i < what.programs.size(); ++i) {
    auto& name = *what.programs[i].mutable_argv(0);
    if (what.search[i].empty() || name.find('/') != name.npos) continue;
    const auto found = base::find_executable(name, what.search[i]);
    if (found) name = (std::filesystem::path(directory) / *found).lexically_normal();
  }
}

}  // namespace

MpiServers::MpiServers(EventLoop& loop, DaemonLink& link, const Plan& plan, Handlers handlers)
    : loop_(loop), link_(link), plan_(plan), handlers_(std::move(handlers)) {}

void MpiServers::start_pmi() {
  PmiHub::Handlers handlers;
  handlers.fence = [this](std::uint32_t world, const PmiActions::Fence& fence) {
    pmi_fence(world, fence);
  };
  handlers.abort = [this](const PmiActions::Abort& abort) {
    handlers_.abort({plan_.rank_of(abort.task), abort.code, abort.message});
  };
  handlers.note = handlers_.note;
  handlers.initialised = handlers_.initialised;
  handlers.spawn = [this](PmiActions::Spawn&& spawn) { spawn_over_pmi(std::move(spawn)); };
  handlers.name = [this](PmiActions::Name&& name) { ask_about(std::move(name)); };
  pmi_.emplace(loop_, plan_.local_tasks(), std::move(handlers));
  if (plan_.node_count() > 1 || plan_.can_spawn()) make_peers();
  serve_world(plan_);
}

void MpiServers::make_peers() {
  const auto send = [this](wire::JobRelay&& message) {
    message.set_attempt(plan_.prepare.attempt());
    link_.send(message);
  };
  peers_.emplace(loop_, plan_.prepare.node_index(), plan_.nodes_of_tasks(), send);
}

void MpiServers::serve_world(const Plan& world) {
  const auto& spawned = world.prepare.world();
  auto& tasks = worlds_[world.world()];
  tasks.assign(spawned.places().begin(), spawned.places().end());
  for (std::uint32_t rank = 0; world.world() == 0 && rank < world.size; ++rank) {
    tasks.push_back(rank);
  }
  std::vector<std::uint32_t> apps;
  for (const std::uint32_t task : world.members) apps.push_back(world.apps[task]);
  PmiJob job{.name = world.key_space(),
             .size = world.size,
             .local_tasks = static_cast<std::uint32_t>(world.members.size()),
             .process_mapping = process_mapping(world.nodes_of_ranks()),
             .keep_going = plan_.spec.keep_going(),
             .apps = std::move(apps),
             .can_spawn = plan_.can_spawn(),
             .universe = plan_.total,
             .key_values = spawned.key_values(),
             .takes_long_values = takes_long_pmi_values(world)};
  pmi_->add_world(world.world(), world.members, std::move(job));
}

bool MpiServers::add_world(const Plan& world) {
  if (pmi_) serve_world(world);
  return pmix_ && pmix_->add_world(prepare_bytes(world));
}

// ---- requests of tasks

// The head gathers only fences of the first world, and only if each node has tasks of that world.
void MpiServers::pmi_fence(std::uint32_t world, const PmiActions::Fence& fence) {
  if (!plan_.can_spawn()) return send_fence(fence, false);
  peers_->fence(worlds_[world], fence.key_values,
                [this, world, sequence = fence.sequence](const PeerExchange::Answer& answer) {
                  if (answer.outcome == pmix::ExchangeOutcome::Success) {
                    return end_pmi_fence(world, sequence, answer.data);
                  }
                  handlers_.abort({worlds_[world].front(), kExitError, "a PMI barrier failed"});
                });
}

void MpiServers::end_pmi_fence(std::uint32_t world, std::uint64_t sequence,
                               std::string_view key_values) {
  auto taken = pmi_->fence_done(world, sequence, key_values);
  if (!taken) base::log_warning("Ignored invalid fence result", base::kv("err", taken.error()));
}

void MpiServers::ask_about(PmiActions::Name&& name) {
  if (!peers_) make_peers();
  const auto task = name.task;
  const auto answered = [this, task](const PeerExchange::Answer& answer) {
    const bool is_good = answer.outcome == pmix::ExchangeOutcome::Success;
    pmi_->name_done(task, is_good, answer.items.empty() ? "" : answer.items.front().value);
  };
  const auto owner = plan_.rank_of(task);
  switch (name.kind) {
    case PmiActions::Name::Kind::Publish:
      return peers_->publish(owner, name.service, std::move(name.port), answered);
    case PmiActions::Name::Kind::Lookup:
      return peers_->lookup(name.service, answered);
    case PmiActions::Name::Kind::Unpublish:
      return peers_->unpublish(owner, name.service, answered);
  }
}

void MpiServers::spawn_over_pmi(PmiActions::Spawn&& spawn) {
  const auto task = spawn.task;
  search_programs(spawn.what, plan_.spec.directory());
  handlers_.spawn(task, std::move(spawn.what), [this, task](const SpawnHub::Result& result) {
    pmi_->spawn_done(task, result.world != 0);
  });
}

// The message comes from a different process, so the task number may be arbitrary.
void MpiServers::spawn_over_pmix(const wire::PmixSpawn& spawn) {
  const auto task = spawn.task();
  const auto done = [this, token = spawn.token()](const SpawnHub::Result& result) {
    pmix_->spawn_done(token, result.world);
  };
  if (task >= plan_.local_tasks()) return done({});
  if (!plan_.can_spawn()) {  // the server has answered
    if (!std::exchange(has_refused_spawn_, true)) handlers_.note(task, kSpawnIsRefused);
    return;
  }
  PmiSpawn what;
  what.programs.assign(spawn.programs().begin(), spawn.programs().end());
  handlers_.spawn(task, std::move(what), done);
}

void MpiServers::make_pmix() {
  PmixProcess::Handlers handlers;
  handlers.failed = handlers_.pmix_failed;
  handlers.ended = handlers_.pmix_ended;
  handlers.fence = [this](const PmiActions::Fence& fence) { send_fence(fence, true); };
  handlers.relay = [this](wire::JobRelay& message) {
    message.set_attempt(plan_.prepare.attempt());
    link_.send(message);
  };
  handlers.initialised = handlers_.initialised;
  handlers.connected_twice = handlers_.connected_twice;
  handlers.abort = [this](const wire::PmixAbort& abort) {
    handlers_.abort({abort.rank(), abort.code(), abort.message()});
  };
  handlers.spawn = [this](const wire::PmixSpawn& spawn) { spawn_over_pmix(spawn); };
  handlers.world_ready = handlers_.world_ready;
  pmix_.emplace(loop_, std::move(handlers));
}

base::Result<std::vector<std::string>> MpiServers::offer_pmix(std::string prepare) {
  make_pmix();
  const auto port = pmix_->offer(std::move(prepare));
  if (port) return pmix::client_environment(plan_, pmix_->directory(), *port);
  pmix_.reset();
  return port.error();
}

std::vector<base::UniqueFd> MpiServers::take_pmix_descriptors() {
  return pmix_ ? pmix_->take_descriptors() : std::vector<base::UniqueFd>();
}

void MpiServers::lack_pmix(std::string why) {
  if (plan_.prepare.tasks_on_node_size() < 2) return;
  lack_ = std::move(why);
  report_lack();
}

void MpiServers::report_lack() {
  auto mark = std::string(kLackMark) + plan_.prepare.node_name() + '\0';
  send_fence({kFirstFence, std::move(mark)}, true);
}

// A fence is entered on a node with PMIx only when a task there uses PMIx. So the nodes without
// PMIx do not decide: they cannot know that a node took part, and a node whose tasks have ended has
// left.
void MpiServers::end_pmix_fence(std::uint64_t sequence, std::string_view data) {
  if (!pmix_ || !pmix_->pending_fence()) return;
  const auto lacking = nodes_in_lack(data);
  if (lacking.empty()) return pmix_->fence_done(sequence, data);
  handlers_.abort({plan_.rank_of(0), kExitError,
                   fmt::format("this task uses PMIx, but {} no PMIx: scored-pmix is not installed "
                               "there: install the package scored-node, or build with libpmix-dev",
                               lacking)});
}

base::Status MpiServers::connect(std::uint32_t task, std::vector<base::UniqueFd>& descriptors) {
  if (!pmi_) return {};
  auto socket = pmi_->connect(task);
  if (!socket) return socket.error();
  descriptors.push_back(std::move(*socket));
  return {};
}

void MpiServers::task_ended(std::uint32_t task, bool has_failed) {
  if (pmi_) pmi_->task_ended(task, has_failed);
  if (pmix_ && !has_failed && pmix_->was_initialised(task)) {
    handlers_.abort({plan_.rank_of(task), 1, "ended without MPI_Finalize", true});
  }
}

void MpiServers::send_fence(const PmiActions::Fence& fence, bool pmix) {
  FencePart& part = pmix ? pmix_part_ : pmi_part_;
  send_step(part.enter(fence, plan_.prepare.fence_pieces()));
}

void MpiServers::send_step(wire::FenceEnter message) {
  message.set_attempt(plan_.prepare.attempt());
  link_.send(message);
}

void MpiServers::fence_done(const wire::FenceDone& done) {
  auto step = (done.pmix() ? pmix_part_ : pmi_part_).take(done);
  if (step.answer) send_step(*std::move(step.answer));
  if (!step.result) return;
  if (done.pmix()) return end_pmix_fence(done.sequence(), *step.result);
  if (pmi_) end_pmi_fence(0, done.sequence(), *step.result);
}

// The server ends with the node's last task, but other nodes may still send requests to it.
void MpiServers::relay(const wire::JobRelay& message) {
  if (message.shepherds()) {
    if (peers_) peers_->receive(message.node_index(), message.message());
    return;
  }
  if (!lack_.empty()) {
    return handlers_.abort(
        {plan_.rank_of(0), kExitError, lack_ + ", but tasks of other nodes use it"});
  }
  if (!pmix_) return;
  pmix_->begin();
  if (pmix_->is_running()) return pmix_->relay(message.SerializeAsString());
  auto answer = pmix::answer_of_the_departed(message.message());
  if (!answer) return;
  wire::JobRelay out = message;
  out.set_attempt(plan_.prepare.attempt());
  *out.mutable_message() = std::move(*answer);
  link_.send(out);
}

void MpiServers::resume() {
  for (const FencePart* part : {&pmi_part_, &pmix_part_}) {
    if (auto again = part->resume()) send_step(*std::move(again));
  }
}

void MpiServers::clean_up() {
  if (pmix_) pmix_->clean_up();
}

}  // namespace score::shepherd
