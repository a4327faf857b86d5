#include "scored/node/attempts/attempts.hpp"

#include "base/async/timeout.hpp"
#include "base/exit_codes.hpp"
#include "base/model/machine_fault.hpp"
#include "base/os/log.hpp"
#include "base/text/plain.hpp"
#include "proto/frames/parse.hpp"
#include "scored/control/roster.hpp"
#include "scored/node/attempts/process_tree.hpp"

#include <algorithm>
#include <unistd.h>

namespace score::node {

namespace {

// A shepherd that is gone refuses at once. A living one may be late on a busy machine, and giving
// it up ends its job. So this is long, and the deadline is the same for all that are adopted.
constexpr Duration kReportTimeout = std::chrono::seconds{10};
constexpr Duration kClearedPeriod = std::chrono::milliseconds{5};

// Returns launcher::StartRequest::checkpoint of the job.
std::uint8_t checkpoint_of(const std::string& spec) {
  wire::LaunchSpec parsed;
  if (!parsed.ParseFromString(spec) || parsed.checkpoint().empty()) return 0;
  return parsed.restart().empty() ? 1 : 2;
}

}  // namespace

Attempts::Attempts(AttemptParts parts, Settings settings, ShepherdFrames::Handlers handlers,
                   Found found)
    : parts_(std::move(parts)),
      node_name_(std::move(settings.node_name)),
      commands_socket_(std::move(settings.commands_socket)),
      scratch_path_(std::move(settings.scratch_path)),
      scratch_host_(std::move(settings.scratch_host)),
      shepherds_(parts_, std::move(settings.start)),
      sweeps_(parts_, shepherds_, scratch_path_),
      frames_(parts_, after_epilog(std::move(handlers)), shepherds_.cores().processors.size(),
              [this](const Attempt& attempt) { return has_others(attempt); }),
      end_(parts_),
      samples_(parts_),
      found_(std::move(found)) {}

AttemptPtr Attempts::find(AttemptId attempt) const {
  const auto found = attempts_.find(attempt);
  return found == attempts_.end() ? nullptr : found->second;
}

AttemptPtr Attempts::add(AttemptId attempt, std::optional<UserId> user) {
  auto made = std::make_shared<Attempt>();
  made->id = attempt;
  made->user = user;
  made->socket = shepherds_.socket_of(attempt, user);
  attempts_[attempt] = made;
  return made;
}

std::vector<Attempts::RunningTasks> Attempts::running() const {
  std::vector<RunningTasks> tasks;
  for (const auto& [id, attempt] : attempts_) {
    if (attempt->is_removed || attempt->tasks.empty()) continue;
    tasks.push_back({id, attempt->ranks, attempt->tasks, attempt->shepherd});
  }
  return tasks;
}

std::size_t Attempts::running_count() const {
  return static_cast<std::size_t>(std::count_if(
      attempts_.begin(), attempts_.end(),
      [](const auto& one) { return !one.second->is_removed && !one.second->tasks.empty(); }));
}

bool Attempts::has_others(const Attempt& attempt) const {
  const JobHere job{job_of(attempt.id), attempt.user, attempt.cores};
  return std::any_of(attempts_.begin(), attempts_.end(), [&job](const auto& entry) {
    const Attempt& other = *entry.second;
    return !other.is_removed && !other.tasks.empty() &&
           competes(job, {job_of(other.id), other.user, other.cores});
  });
}

std::vector<const wire::ScratchSample*> Attempts::volumes() const {
  std::vector<const wire::ScratchSample*> samples;
  for (const auto& [id, attempt] : attempts_) {
    const bool is_there = attempt->has_volume && !attempt->is_removed;
    if (is_there && attempt->volume.attempt() != 0) samples.push_back(&attempt->volume);
  }
  return samples;
}

// ---- The agent's actions ------------------------------------------------------------------------

void Attempts::launch(gang::LaunchShepherd order) {
  const auto before = find(order.placed.attempt);
  const auto attempt = add(order.placed.attempt, order.placed.user);
  attempt->memory = order.placed.memory;
  attempt->cores = order.placed.cores;
  attempt->ranks = ranks_of(order.placed);
  attempt->has_volume = order.placed.scratch > Bytes(0);
  attempt->checkpoint = checkpoint_of(order.spec);
  parts_.tasks.spawn("run an attempt", run_new(attempt, before, std::move(order)));
}

asio::awaitable<void> Attempts::run_new(AttemptPtr attempt, AttemptPtr before,
                                        gang::LaunchShepherd order) {
  // The two attempts share a socket and cgroups, so leftovers of the old one would be mistaken for
  // the new one.
  while (before && !before->is_cleared) co_await parts_.clock.sleep_for(kClearedPeriod);
  if (attempt->has_volume) co_await sweeps_.wait();
  if (attempt->is_removed) co_return;
  const auto begun = co_await begin_hooks(attempt, order);
  if (attempt->is_removed) co_return;
  if (!begun) {
    gang::ShepherdRefused refused{kExitError, plain_text(begun.error()), true};
    co_return frames_.report(attempt->id, refused);
  }
  auto started = co_await shepherds_.start(attempt, order.placed);
  if (attempt->is_removed) co_return;
  if (!started) {
    log_warning("Refused an attempt", kv("attempt", attempt->id), kv("err", started.error()));
    gang::ShepherdRefused refused{kExitError, plain_text(started.error()),
                                  is_machine_fault(started.error())};
    frames_.report(attempt->id, refused);
    co_return;
  }
  follow_plan(*attempt, order.placed);
  parts_.networks.add(order.placed, attempt->connection);
  if (auto prepared = prepare(*attempt, order); !prepared) {
    gang::ShepherdRefused refused{kExitError, plain_text(prepared.error()),
                                  is_machine_fault(prepared.error())};
    co_return frames_.report(attempt->id, refused);
  }
  if (attempt->is_killed) end_.kill_tasks(*attempt);
  co_await frames_.read(attempt);
}

// ---- Hooks of the site --------------------------------------------------------------------------

asio::awaitable<Status> Attempts::begin_hooks(AttemptPtr attempt, gang::LaunchShepherd order) {
  const auto request = parts_.hooks.request_for(order.placed, order.spec);
  if (!request) co_return Status();
  const bool is_step = is_of_allocation(*request);
  attempt->has_hooks = !is_step;
  if (is_step) attempt->allocation = JobId(request->job);
  attempt->prolog = std::make_shared<HookHandle>();
  Status passed;
  if (is_step) {
    passed = co_await parts_.hooks.enter_step(*request, attempt->prolog);
  } else {
    passed = co_await parts_.hooks.prolog(*request, attempt->prolog);
  }
  attempt->prolog.reset();
  if (attempt->is_killed) co_return fail(Errc::Cancelled, "cancelled before its tasks started");
  co_return passed;
}

ShepherdFrames::Handlers Attempts::after_epilog(ShepherdFrames::Handlers handlers) {
  auto then = handlers.event;
  handlers.event = [this, then](AttemptId id, const gang::ShepherdEvent& event) {
    const auto attempt = find(id);
    const bool is_end = std::holds_alternative<gang::ShepherdRefused>(event) ||
                        std::holds_alternative<gang::ShepherdDone>(event) ||
                        std::holds_alternative<gang::ShepherdGone>(event);
    if (!is_end || !attempt || !attempt->has_hooks) return then(id, event);
    if (std::exchange(attempt->is_finishing, true)) return;
    // No task is left on the node when the epilog starts.
    const bool may_leave = std::holds_alternative<gang::ShepherdGone>(event);
    if (attempt->shepherd > 0 && (may_leave || parts_.cgroups != nullptr))
      end_.kill_tasks(*attempt);
    const auto report_end = [then, id, event] { then(id, event); };
    parts_.tasks.spawn("run an epilog", finish(attempt, report_end));
  };
  return handlers;
}

asio::awaitable<void> Attempts::finish(AttemptPtr attempt, std::function<void()> report_end) {
  co_await parts_.hooks.epilog(attempt->id);
  attempt->has_hooks = false;
  if (!attempt->is_removed) report_end();
}

// Runs the epilogs that a daemon before this one did not run, or not to their end. Those of
// allocations follow when the head welcomes the node or forgets them.
void Attempts::resume_epilogs() {
  for (const AttemptId id : parts_.hooks.due()) {
    const auto attempt = find(id);
    if (attempt && !attempt->is_removed && !attempt->is_finishing) {
      attempt->has_hooks = true;
    } else {
      parts_.tasks.spawn("run an epilog", parts_.hooks.epilog(id));
    }
  }
}

// ---- The plan of an attempt ---------------------------------------------------------------------

void Attempts::follow_plan(const Attempt& attempt, const base::PlacedTasks& placed) {
  if (placed.nodes.size() > 1) {
    std::vector<std::uint32_t> ranks;
    for (const std::uint32_t node : placed.nodes) ranks.push_back(control::rank_of_node(node));
    parts_.switcher.set_gang(
        attempt.id, std::make_shared<DirectGang>(attempt.id, std::move(ranks), placed.node_index));
  }
  if (parts_.cgroups == nullptr) {
    if (attempt.group > 1) {
      parts_.guard.watch(attempt.group, true);
      parts_.switcher.add(attempt.id, std::make_unique<SignalGroup>(attempt.group));
    }
    return;
  }
  // A job without cores of its own (scout) is never stopped, so it must not take time from gangs.
  // The switcher does not change its priority.
  const bool is_beside = placed.cores.empty();
  if (is_beside) {
    auto lowered = parts_.cgroups->set_idle_priority(attempt.id);
    if (!lowered)
      log_warning("Cannot lower the priority of an attempt", kv("attempt", attempt.id),
                  kv("err", lowered.error()));
  }
  auto target = CgroupFreeze::open(parts_.cgroups->tasks_path(attempt.id),
                                   is_beside ? "" : parts_.cgroups->idle_path(attempt.id));
  if (target) {
    (*target)->set_has_helpers(attempt.has_volume);
    auto usage = CgroupUsage::open(parts_.cgroups->tasks_path(attempt.id));
    parts_.switcher.add(attempt.id, *std::move(target), usage ? *std::move(usage) : nullptr,
                        static_cast<std::uint32_t>(attempt.cores.size()));
    if (!attempt.tasks.empty()) parts_.switcher.set_leader(attempt.id, attempt.tasks.front());
  } else {
    log_error("Cannot switch an attempt", kv("attempt", attempt.id), kv("err", target.error()));
  }
}

Status Attempts::prepare(Attempt& attempt, const gang::LaunchShepherd& order) {
  auto message = proto::to_wire(order.placed);
  message.set_spec(order.spec);
  message.set_scratch_path(scratch_path_);
  if (attempt.has_volume) {
    if (scratch_path_.empty()) return fail(Errc::Unsupported, "[pario] is not configured here");
    const auto host = scratch_host_();
    if (!host)
      return host.error().with_context("cannot determine the address of this node for its volume");
    message.set_scratch_host(*host);
  }
  message.set_node_name(node_name_);
  message.set_first_core(shepherds_.cores().first);
  for (const auto cpu : shepherds_.cores().processors_of(order.placed.cores)) message.add_cpus(cpu);
  message.set_commands_socket(commands_socket_);
  for (const auto& kind : shepherds_.devices().restricted_kinds()) message.add_restricted(kind);
  attempt.sends_fence_pieces = parts_.head.bounds_exchange();
  message.set_fence_pieces(attempt.sends_fence_pieces);
  message.set_ofi_providers(parts_.networks.ofi_providers());
  message.set_own_sessions(parts_.cgroups != nullptr);
  message.set_limit_by_rlimit(parts_.cgroups == nullptr || !parts_.cgroups->limits_memory());
  send(*attempt.connection, message);
  return {};
}

void Attempts::start(AttemptId id) {
  const auto attempt = find(id);
  if (!attempt || !attempt->connection) return;
  wire::StartTasks message;
  message.set_attempt(id.value());
  send(*attempt->connection, message);
}

void Attempts::signal(AttemptId id, int number) {
  if (const auto attempt = find(id)) send_signal_to_tasks(*attempt, number);
}

void Attempts::kill(AttemptId id) {
  const auto attempt = find(id);
  if (!attempt) return;
  if (!attempt->prolog) return end_.kill(attempt);
  attempt->is_killed = true;
  attempt->prolog->cancel();
}

void Attempts::retire(AttemptId id) {
  const auto attempt = find(id);
  if (!attempt || std::exchange(attempt->is_retired, true)) return;
  attempt->tasks.clear();
  parts_.switcher.remove(id);
  parts_.networks.remove(id);
  parts_.guard.watch(attempt->group, false);
  attempt->group = 0;  // the kernel may reuse the number
  // The report of a shepherd is not proof that the tasks have ended, and no one stops them from
  // here on.
  if (parts_.cgroups != nullptr) [[maybe_unused]]
    auto killed = parts_.cgroups->kill_tasks(id);
}

void Attempts::remove(AttemptId id) {
  const auto attempt = find(id);
  if (!attempt || std::exchange(attempt->is_removed, true)) return;
  retire(id);
  if (attempt->prolog) attempt->prolog->cancel();
  if (attempt->connection) send(*attempt->connection, wire::ShepherdEnd());
  unlink(attempt->socket.c_str());
  parts_.tasks.spawn("remove an attempt", run_remove(attempt));
}

asio::awaitable<void> Attempts::run_remove(AttemptPtr attempt) {
  co_await end_.remove(attempt);
  while (attempt->prolog) co_await parts_.clock.sleep_for(kClearedPeriod);
  if (attempt->has_hooks) co_await parts_.hooks.epilog(attempt->id);
  if (attempt->allocation) parts_.hooks.leave_step(*attempt->allocation);
  const bool has_left_volume = attempt->has_volume && !attempt->is_volume_gone;
  if (attempt->user && (has_left_volume || attempt->is_shepherd_gone))
    sweeps_.sweep(*attempt->user);
  attempt->is_cleared = true;
  if (find(attempt->id) == attempt) attempts_.erase(attempt->id);
}

// ---- Frames -------------------------------------------------------------------------------------

bool Attempts::from_head(const proto::InFrame& frame) {
  if (frame.type == proto::FrameType::AttemptSecret) {
    const auto message = proto::parse<wire::AttemptSecret>(frame);
    if (message) keep_secret(*message);
    return message.has_value();
  }
  const auto id = shepherd_frame_attempt(frame);
  if (!id) return false;
  if (*id == AttemptId()) return parts_.networks.from_head(frame);
  const auto attempt = find(*id);
  if (!attempt || ShepherdFrames::is_permission(*attempt, frame)) return true;
  ShepherdFrames::note_refusal(*attempt, frame);
  if (attempt->connection) attempt->connection->send(frame.type, frame.payload);
  return true;
}

// The secret of an attempt that is gone meanwhile is not needed.
void Attempts::keep_secret(const wire::AttemptSecret& message) const {
  if (const auto attempt = find(AttemptId(message.attempt()))) attempt->secret = message.secret();
}

// The kernel has named the peer. All processes of an attempt descend from its shepherd, which is a
// subreaper.
void Attempts::prove(const PeerCredentials& peer, wire::LoginHello& hello) const {
  const auto above = ancestors(peer.pid);
  for (const auto& [id, attempt] : attempts_) {
    const bool may_be = !attempt->secret.empty() && attempt->user == peer.uid;
    if (!may_be || std::ranges::find(above, attempt->shepherd) == above.end()) continue;
    hello.set_attempt(id.value());
    hello.set_secret(attempt->secret);
    return;
  }
}

void Attempts::resume_all(bool takes_samples) {
  samples_.welcomed(takes_samples);
  parts_.networks.resume();
  for (const auto& [id, attempt] : attempts_) {
    if (!attempt->connection || attempt->is_removed) continue;
    attempt->is_resuming = request_report(*attempt);
    attempt->has_refused_output = false;
  }
}

// ---- After a restart ----------------------------------------------------------------------------

// All reports are requested before the first is awaited.
asio::awaitable<void> Attempts::adopt_all() {
  std::vector<std::pair<AttemptPtr, Result<void>>> asked;
  for (const auto& [id, user] : shepherds_.find_all()) {
    const auto attempt = add(id, user);
    auto connected = co_await shepherds_.connect(attempt);
    if (connected) request_report(*attempt);
    asked.emplace_back(attempt, std::move(connected));
  }
  const TimePoint deadline = parts_.clock.now() + kReportTimeout;
  for (auto& [attempt, connected] : asked) {
    if (!connected) {
      give_up(*attempt, connected.error());
    } else {
      co_await adopt(attempt, deadline);
    }
  }
  sweeps_.sweep_all();
  resume_epilogs();
  if (parts_.cgroups == nullptr) co_return;
  parts_.tasks.spawn("watch memory", watch_memory());
  for (const AttemptId id : parts_.cgroups->list()) {
    if (find(id)) continue;
    add(id);
    remove(id);
  }
}

asio::awaitable<void> Attempts::watch_memory() {
  for (;;) {
    co_await parts_.clock.sleep_for(kMemoryPeriod);
    samples_.sample(attempts_);
  }
}

void Attempts::give_up(const Attempt& attempt, const Error& why) {
  log_warning("Removed an attempt whose shepherd is gone", kv("attempt", attempt.id),
              kv("err", why));
  if (const auto kept = find(attempt.id)) {
    kept->has_volume = !scratch_path_.empty();
    kept->is_shepherd_gone = true;
  }
  remove(attempt.id);
}

asio::awaitable<void> Attempts::adopt(AttemptPtr attempt, TimePoint deadline) {
  auto reading = shepherds_.read_report(attempt);
  auto found = co_await with_deadline(parts_.clock, deadline, std::move(reading));
  if (!found) {
    give_up(*attempt, found.error());
    co_return;
  }
  log_notice("Adopted an attempt", kv("attempt", attempt->id), kv("shepherd", attempt->shepherd));
  follow_plan(*attempt, found->placed);
  parts_.networks.add(found->placed, attempt->connection);
  found->usage = usage_of(parts_, *attempt, found->usage);
  samples_.begin(*attempt);
  found_(*found);
  attempt->is_finishing = found->report().phase == base::AttemptPhase::Exited;
  parts_.tasks.spawn("run an attempt", frames_.read(attempt));
}

}  // namespace score::node
