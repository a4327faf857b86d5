// How a shepherd comes to be, and how one is found again. Its socket is the daemon's: bound here,
// handed to the launcher, inherited by the shepherd. So it can be connected to before the shepherd
// runs, and its name in the directory, "attempt.user.sock", is how a restarted daemon finds it and
// knows whose it is, whatever it says itself.
#include "base/async/timeout.hpp"
#include "base/exit_codes.hpp"
#include "base/limits.hpp"
#include "base/os/log.hpp"
#include "base/os/spawn.hpp"
#include "base/text.hpp"
#include "proto/transport/unix_connection.hpp"
#include "scored/launcher/protocol.hpp"
#include "scored/node/attempts/attempts.hpp"

#include <csignal>
#include <cstring>
#include <filesystem>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace score::node {

namespace {

namespace fs = std::filesystem;

constexpr Duration kConnectTimeout = std::chrono::milliseconds{500};
// A shepherd that is gone refuses at once. One that lives may be late on a machine that is busy,
// and giving it up ends its job: so this is long, and the same instant for all that are adopted.
constexpr Duration kReportTimeout = std::chrono::seconds{10};
constexpr std::string_view kSocketSuffix = ".sock";

Result<UniqueFd> listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return fail(Errc::TooLarge, "socket path {}", path);
  std::memcpy(address.sun_path, path.data(), path.size());
  unlink(path.c_str());
  UniqueFd made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made) return fail(errno_code(errno), "socket");
  if (bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(made.get(), 4) != 0) {
    return fail(errno_code(errno), "listen at {}", path);
  }
  return made;
}

std::vector<std::uint32_t> ranks_of(const base::PlacedTasks& placed) {
  return ranks_of_node(placed.tasks_on_node, placed.node_index, placed.distribution);
}

proto::ConnectionLimits connection_limits() {
  proto::ConnectionLimits chosen;
  chosen.write_queue_bytes = limits::kMaxPeerQueueBytes;
  chosen.frame_deadline = limits::kFrameDeadline;
  chosen.descriptors = 2 * kMaxPassedFds;
  return chosen;
}

Error why_not_launched(const Error& error, UserId user) {
  const bool is_unknown = error.is(std::errc::no_such_file_or_directory);
  if (is_unknown && error.context() == launcher::kLookUpUser) {
    return fail(Errc::NotFound, "user {} on this node", user.value());
  }
  return error.with_context("start the shepherd");
}

}  // namespace

void Attempts::launch(gang::LaunchShepherd order) {
  const auto attempt = add(order.placed.attempt, order.placed.user);
  attempt->memory = order.placed.memory;
  attempt->ranks = ranks_of(order.placed);
  parts_.tasks.spawn("run an attempt", run_new(attempt, std::move(order)));
}

asio::awaitable<void> Attempts::run_new(AttemptPtr attempt, gang::LaunchShepherd order) {
  auto started = co_await start_shepherd(attempt, order.placed);
  if (attempt->is_removed) co_return;
  if (!started) {
    log_warning("refuse an attempt", kv("attempt", attempt->id), kv("err", started.error()));
    gang::ShepherdRefused refused{kExitError, started.error().message()};
    handlers_.event(attempt->id, refused);
    co_return;
  }
  follow_plan(*attempt);
  parts_.networks.add(order.placed, attempt->connection);
  prepare(*attempt, order);
  if (attempt->is_killed) kill_tasks(*attempt);
  co_await read_frames(attempt);
}

asio::awaitable<Result<void>> Attempts::start_shepherd(AttemptPtr attempt,
                                                       base::PlacedTasks placed) {
  if (parts_.cgroups != nullptr) {
    auto made = parts_.cgroups->make(placed.attempt, placed.memory);
    if (!made) co_return made.error();
  }
  auto listener = listen_at(attempt->socket);
  if (!listener) co_return listener.error();
  LaunchOrder order{placed.attempt, placed.user, parts_.cgroups != nullptr, settings_.low_priority};
  auto launched = co_await parts_.launcher.launch(order, *std::move(listener));
  if (!launched) co_return why_not_launched(launched.error(), placed.user);
  attempt->shepherd = launched->shepherd;
  attempt->group = launched->group;
  if (auto pidfd = open_pidfd(launched->shepherd)) attempt->pidfd = *std::move(pidfd);
  auto connected = co_await connect(attempt);
  co_return connected;
}

asio::awaitable<Result<void>> Attempts::connect(AttemptPtr attempt) {
  auto peer = co_await proto::connect_unix(attempt->socket, kConnectTimeout, connection_limits());
  if (!peer) co_return peer.error();
  attempt->connection = std::move(peer->connection);
  co_return Result<void>();
}

void Attempts::follow_plan(const Attempt& attempt) {
  if (parts_.cgroups == nullptr) {
    if (attempt.group > 1) {
      parts_.switcher.add(attempt.id, std::make_unique<SignalGroup>(attempt.group));
    }
    return;
  }
  auto target = CgroupFreeze::open(parts_.cgroups->tasks_path(attempt.id));
  if (target) {
    auto usage = CgroupUsage::open(parts_.cgroups->tasks_path(attempt.id));
    parts_.switcher.add(attempt.id, *std::move(target), usage ? *std::move(usage) : nullptr);
    if (!attempt.tasks.empty()) parts_.switcher.set_leader(attempt.id, attempt.tasks.front());
  } else {
    log_error("cannot switch an attempt", kv("attempt", attempt.id), kv("err", target.error()));
  }
}

void Attempts::prepare(Attempt& attempt, const gang::LaunchShepherd& order) {
  auto message = proto::to_wire(order.placed, order.spec);
  message.set_node_name(settings_.node_name);
  message.set_own_sessions(parts_.cgroups != nullptr);
  message.set_limit_by_rlimit(parts_.cgroups == nullptr || !parts_.cgroups->limits_memory());
  send(*attempt.connection, message);
}

// ---- after a restart ----------------------------------------------------------------------------

std::vector<Attempts::Name> Attempts::named() const {
  std::vector<Name> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(settings_.directory, ignored)) {
    std::string name = entry.path().filename();
    if (!name.ends_with(kSocketSuffix)) continue;
    name.resize(name.size() - kSocketSuffix.size());
    const auto parts = split(name, '.');
    const auto id = parse_number<std::uint64_t>(parts[0]);
    if (!id || parts.size() > 2) continue;
    Name found{AttemptId{*id}, std::nullopt};
    if (parts.size() == 2) {
      const auto user = parse_number<std::uint32_t>(parts[1]);
      if (!user) continue;
      found.user = UserId(*user);
    }
    names.push_back(found);
  }
  return names;
}

// All are asked before the first is waited for.
asio::awaitable<void> Attempts::adopt_all() {
  std::vector<std::pair<AttemptPtr, Result<void>>> asked;
  for (const auto& [id, user] : named()) {
    const auto attempt = add(id, user);
    auto connected = co_await connect(attempt);
    if (connected) send_resume(*attempt);
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
  if (parts_.cgroups == nullptr) co_return;
  for (const AttemptId id : parts_.cgroups->list()) {
    if (find(id)) continue;
    add(id);
    remove(id);
  }
}

void Attempts::give_up(const Attempt& attempt, const Error& why) {
  log_warning("remove an attempt whose shepherd is gone", kv("attempt", attempt.id),
              kv("err", why));
  remove(attempt.id);
}

bool Attempts::send_resume(const Attempt& attempt) {
  wire::ShepherdResume resume;
  resume.set_attempt(attempt.id.value());
  return send(*attempt.connection, resume);
}

asio::awaitable<void> Attempts::adopt(AttemptPtr attempt, TimePoint deadline) {
  auto reading = read_report(attempt);
  auto found = co_await with_deadline(parts_.clock, deadline, std::move(reading));
  if (!found) {
    give_up(*attempt, found.error());
    co_return;
  }
  log_notice("adopt", kv("attempt", attempt->id), kv("shepherd", attempt->shepherd));
  follow_plan(*attempt);
  parts_.networks.add(found->placed, attempt->connection);
  handlers_.found(*found);
  parts_.tasks.spawn("run an attempt", read_frames(attempt));
}

// What a shepherd said before the report was on its way already. The report holds it, or it is
// repeated after the report.
asio::awaitable<Result<proto::FoundAttempt>> Attempts::read_report(AttemptPtr attempt) {
  auto frame = co_await attempt->connection->read(proto::Role::Shepherd);
  while (frame && frame->type != proto::FrameType::ShepherdReport) {
    frame = co_await attempt->connection->read(proto::Role::Shepherd);
  }
  if (!frame) co_return frame.error();
  auto report = proto::parse<wire::ShepherdReport>(*frame);
  if (!report) co_return report.error();
  auto found = proto::from_wire(*report);
  if (!found) co_return found.error();
  if (found->placed.attempt != attempt->id) {
    co_return fail(Errc::Malformed, "it says it is attempt {}", found->placed.attempt);
  }
  if (attempt->user && found->placed.user != *attempt->user) {
    co_return fail(Errc::Denied, "it says it is user {}'s", found->placed.user);
  }
  attempt->memory = found->placed.memory;
  attempt->ranks = ranks_of(found->placed);
  attempt->tasks = found->pids;
  attempt->group = static_cast<pid_t>(report->group());
  attempt->shepherd = static_cast<pid_t>(report->shepherd_pid());
  if (auto pidfd = open_pidfd(attempt->shepherd)) attempt->pidfd = *std::move(pidfd);
  if (parts_.cgroups == nullptr && attempt->group > 1) ::kill(-attempt->group, SIGCONT);
  co_return found;
}

}  // namespace score::node
