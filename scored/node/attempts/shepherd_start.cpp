#include "scored/node/attempts/shepherd_start.hpp"

#include "base/limits.hpp"
#include "base/model/distribution.hpp"
#include "base/os/log.hpp"
#include "base/os/spawn.hpp"
#include "base/text.hpp"
#include "proto/transport/unix_connection.hpp"
#include "scored/node/attempts/process_tree.hpp"
#include "scored/privileged/launcher/protocol.hpp"

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
constexpr std::string_view kSocketSuffix = ".sock";

Result<UniqueFd> listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(Errc::TooLarge, "cannot use socket path {}", path);
  std::memcpy(address.sun_path, path.data(), path.size());
  unlink(path.c_str());
  UniqueFd made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made) return fail(errno_code(errno), "cannot make a socket");
  if (bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(made.get(), 4) != 0) {
    return fail(errno_code(errno), "cannot listen at {}", path);
  }
  return made;
}

proto::ConnectionLimits connection_limits() {
  proto::ConnectionLimits chosen;
  chosen.write_queue_bytes = limits::kMaxPeerQueueBytes;
  chosen.write_deadline = limits::kWriteDeadline;
  chosen.frame_deadline = limits::kFrameDeadline;
  chosen.descriptors = 2 * kMaxPassedFds;
  return chosen;
}

Error why_not_launched(const Error& error, UserId user) {
  const bool is_unknown = error.is(std::errc::no_such_file_or_directory);
  if (is_unknown && error.context() == launcher::kLookUpUser) {
    return fail(Errc::NotFound, "user {0} is unknown on this node: see getent passwd {0}",
                user.value());
  }
  if (error.context().starts_with("criu") || error.context().starts_with("a launcher of")) {
    return fail(Errc::Unsupported, "--checkpoint: this node needs {}", error.context());
  }
  if (is_unknown && error.context().starts_with("scored-")) {  // a helper program of the shepherd
    return fail(Errc::NotFound, "{} is not installed on this node: install the package scored-node",
                error.context());
  }
  return error.with_context("cannot start the shepherd");
}

}  // namespace

std::vector<std::uint32_t> ranks_of(const base::PlacedTasks& placed) {
  return ranks_of_node(placed.tasks_on_node, placed.node_index, placed.distribution);
}

std::string ShepherdStart::socket_of(AttemptId attempt, std::optional<UserId> user) const {
  return user ? fmt::format("{}/{}.{}.sock", settings_.directory, attempt, *user)
              : fmt::format("{}/{}.sock", settings_.directory, attempt);
}

asio::awaitable<Result<void>> ShepherdStart::start(AttemptPtr attempt, base::PlacedTasks placed) {
  const bool may_be_saved = attempt->checkpoint == 0 || parts_.cgroups != nullptr;
  if (!may_be_saved) co_return fail(Errc::Unsupported, "--checkpoint: this node has no cgroup2");
  auto denied = settings_.devices.denied(placed.generic);
  if (!denied) co_return denied.error();
  if (parts_.cgroups != nullptr) {
    JobLimits limits = settings_.limits;
    if (placed.memory != Bytes(0)) limits.memory = placed.memory;
    limits.processors = placed.cores.empty() ? settings_.cores.processors_of_node()
                                             : settings_.cores.processors_of(placed.cores);
    limits.has_helpers = placed.scratch > Bytes(0) || attempt->checkpoint != 0;
    attempt->memory = limits.memory;
    auto made = parts_.cgroups->make(placed.attempt, limits);
    if (!made) co_return made.error();
  }
  auto listener = listen_at(attempt->socket);
  if (!listener) co_return listener.error();
  std::vector<UniqueFd> places;
  if (parts_.cgroups != nullptr) {
    auto opened = parts_.cgroups->open_places(placed.attempt);
    if (!opened) co_return opened.error();
    places = *std::move(opened);
  }
  places.insert(places.begin(), *std::move(listener));
  LaunchOrder order{placed.attempt,          placed.user,
                    is_low_priority(placed), placed.scratch > Bytes(0),
                    attempt->checkpoint,     *std::move(denied)};
  auto launched = co_await parts_.launcher.launch(order, std::move(places));
  if (!launched) co_return why_not_launched(launched.error(), placed.user);
  attempt->shepherd = launched->shepherd;
  attempt->has_own_ids = attempt->checkpoint != 0;
  attempt->group = attempt->has_own_ids ? 0 : launched->group;
  if (auto pidfd = open_pidfd(launched->shepherd)) attempt->pidfd = *std::move(pidfd);
  auto connected = co_await connect(attempt);
  co_return connected;
}

// A job without cores of its own gives way to gangs; where there is no cpu.idle, by its nice value.
bool ShepherdStart::is_low_priority(const base::PlacedTasks& placed) const {
  const bool has_idle =
      parts_.cgroups != nullptr && parts_.cgroups->fill_control() != FillControl::None;
  return settings_.low_priority || (placed.cores.empty() && !has_idle);
}

asio::awaitable<Result<void>> ShepherdStart::connect(AttemptPtr attempt) {
  auto peer = co_await proto::connect_unix(attempt->socket, kConnectTimeout, connection_limits());
  if (!peer) co_return peer.error();
  attempt->connection = std::move(peer->connection);
  co_return Result<void>();
}

asio::awaitable<Result<std::shared_ptr<proto::Connection>>> ShepherdStart::start_helper(
    AttemptId id, UserId user) const {
  const std::string path = fmt::format("{}/helper.{}", settings_.directory, user);
  auto listener = listen_at(path);
  if (!listener) co_return listener.error();
  std::vector<UniqueFd> places;
  places.push_back(*std::move(listener));
  LaunchOrder order{id, user, settings_.low_priority, false, 0, {}};
  auto launched = co_await parts_.launcher.launch(order, std::move(places));
  if (!launched) co_return why_not_launched(launched.error(), user);
  auto peer = co_await proto::connect_unix(path, kConnectTimeout, connection_limits());
  unlink(path.c_str());
  if (!peer) co_return peer.error();
  co_return std::move(peer->connection);
}

std::vector<ShepherdStart::Name> ShepherdStart::find_all() const {
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

bool request_report(const Attempt& attempt) {
  wire::ShepherdResume resume;
  resume.set_attempt(attempt.id.value());
  return send(*attempt.connection, resume);
}

asio::awaitable<Result<proto::FoundAttempt>> ShepherdStart::read_report(AttemptPtr attempt) {
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
    co_return fail(Errc::Malformed, "the shepherd claims attempt {}", found->placed.attempt);
  }
  if (attempt->user && found->placed.user != *attempt->user) {
    co_return fail(Errc::Denied, "the shepherd claims user {}", found->placed.user);
  }
  attempt->memory =
      found->placed.memory != Bytes(0) ? found->placed.memory : settings_.limits.memory;
  attempt->cores = found->placed.cores;
  attempt->has_volume = found->placed.scratch > Bytes(0);
  attempt->ranks = ranks_of(found->placed);
  attempt->reads_stacks = report->reads_stacks();
  attempt->group = static_cast<pid_t>(report->group());
  attempt->shepherd = static_cast<pid_t>(report->shepherd_pid());
  attempt->has_own_ids = report->group() == 0;
  attempt->tasks = attempt->has_own_ids ? outer_ids(attempt->shepherd, found->pids) : found->pids;
  if (auto pidfd = open_pidfd(attempt->shepherd)) attempt->pidfd = *std::move(pidfd);
  if (parts_.cgroups == nullptr && attempt->group > 1) ::kill(-attempt->group, SIGCONT);
  co_return found;
}

}  // namespace score::node
