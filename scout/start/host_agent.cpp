#include "scout/start/host_agent.hpp"

#include "base/exit_codes.hpp"
#include "base/systemd/user_scope.hpp"
#include "base/text.hpp"
#include "proto/transport/key.hpp"
#include "scout/cluster/cluster_cgroup.hpp"
#include "scout/cluster/reaper.hpp"
#include "scout/session/command.hpp"
#include "scout/start/plan/daemon_configs.hpp"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <poll.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr Duration kOrdersLimit = std::chrono::seconds{60};
constexpr Duration kRestartPause = std::chrono::seconds{1};
constexpr std::size_t kMaxInput = 64 * kMaxLineBytes;
constexpr const char* kRegistry = "scored-start-node";

void say(Report::Kind kind, const std::string& text) {
  if (const auto written = write_all(STDOUT_FILENO, encode(Report{kind, text})); !written) return;
}

Status failed(const Error& error) {
  say(Report::Kind::Error, words_of(error));
  return error;
}

// Returns the origin of the ssh connection (sshd(8)), an address that leads to the head's host.
std::string ssh_client() {
  const char* connection = std::getenv("SSH_CONNECTION");
  if (connection == nullptr) return "";
  const std::string_view text(connection);
  return std::string(text.substr(0, text.find(' ')));
}

// Returns the address at which this host reaches the head; empty if unknown. A loopback address
// would also become this node's own address for the other nodes, so it is used only as a last
// resort.
std::string head_host_of(const Orders& orders) {
  if (!orders.head_host.empty()) return orders.head_host;
  const auto client = ssh_client();
  const bool is_loopback = client.starts_with("127.") || client == "::1";
  return (client.empty() || is_loopback) && !orders.own_host.empty() ? orders.own_host : client;
}

Result<proto::Key> key_of(const std::string& digits) {
  std::array<std::uint8_t, proto::kKeyBytes> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto two = std::string_view(digits).substr(2 * i, 2);
    if (std::from_chars(two.data(), two.data() + two.size(), bytes[i], 16).ec != std::errc()) {
      return fail(Errc::Malformed, "key");
    }
  }
  return proto::Key(bytes);
}

}  // namespace

Status HostAgent::boot(const std::string& directory) {
  layout_.directory = directory;
  say(Report::Kind::Hello, SCORE_VERSION);
  auto status = read_orders();
  if (status) status = check_orders();
  if (status) status = write_files();
  if (status) status = start_daemons();
  if (!status) return failed(status.error());
  say(Report::Kind::Ready, layout_.cgroup.empty() ? "signal" : "cgroup");
  return {};
}

Status HostAgent::read_orders() {
  const TimePoint deadline = monotonic_now() + kOrdersLimit;
  for (;;) {
    while (const auto line = next_line()) {
      const auto complete = reader_.take_line(*line);
      if (!complete) return complete.error();
      if (*complete) return {};
    }
    if (monotonic_now() > deadline) return fail(Errc::Timeout, "received no orders in time");
    pollfd input{.fd = STDIN, .events = POLLIN, .revents = 0};
    if (::poll(&input, 1, 1000) <= 0) continue;
    if (auto read = read_input(); !read) return read;
  }
}

Status HostAgent::check_orders() const {
  const auto& orders = reader_.orders();
  if (orders.uid != geteuid()) {
    return fail(Errc::Denied,
                "user id {} here, {} at the head: the user must have the same number on every host",
                geteuid(), orders.uid);
  }
  if (head_host_of(orders).empty()) {
    return fail(Errc::NotFound, "the address of the head is unknown: use --head-address");
  }
  return {};
}

Status HostAgent::write_files() {
  const auto& orders = reader_.orders();
  const auto run_dir = layout_.state_of(kNodeDaemon);
  if (orders.use_cgroups) {
    join_user_scope();
    if (auto made = make_cluster_cgroup(layout_, {kNodeDaemon}); !made) return made;
  }
  for (const auto& path : {run_dir, run_dir + "/shepherds", layout_.state_of("log")}) {
    if (auto made = make_directory(path); !made) return made;
  }
  const auto key = key_of(orders.key);
  if (!key) return key.error();
  if (auto stored = proto::store_key(run_dir + "/key", *key); !stored) return stored;
  return replace_file(layout_.config_of(kNodeDaemon),
                      node_config(layout_, orders, head_host_of(orders)), 0600);
}

Status HostAgent::start_daemons() {
  DaemonSetup setup;
  if (const char* libraries = std::getenv("LD_LIBRARY_PATH"); libraries != nullptr) {
    setup.environment = {std::string("LD_LIBRARY_PATH=") + libraries};
  }
  daemons_.emplace(layout_, std::move(setup));
  heard_ = monotonic_now();
  return daemons_->start_node(kNodeDaemon);
}

Status HostAgent::serve() {
  pollfd input{.fd = STDIN, .events = POLLIN, .revents = 0};
  if (::poll(&input, 1, 0) > 0) {
    if (auto read = read_input(); !read) return read;
  }
  while (const auto line = next_line()) {
    if (*line == "stop") return fail(Errc::Closed, "stop");
  }
  const auto now = monotonic_now();
  if (now - heard_ > kLease) return fail(Errc::Timeout, "no line from the head's host");
  if (ended_ && now >= restart_at_) {
    const auto name = *std::exchange(ended_, std::nullopt);
    if (const auto started = daemons_->restart(name); !started) return failed(started.error());
  }
  return {};
}

// The daemon is restarted after a pause; jobs survive that.
Status HostAgent::on_child(pid_t pid, int shell_code) {
  const auto name = daemons_ ? daemons_->forget(pid) : std::nullopt;
  if (!name) return {};
  const auto what = *name == kNodeDaemon ? "node daemon" : "launcher";
  say(Report::Kind::Note, fmt::format("the {} ended with {} and is restarted: {}", what, shell_code,
                                      daemons_->last_log_line(*name)));
  ended_ = name;
  restart_at_ = monotonic_now() + kRestartPause;
  return {};
}

std::vector<std::string> HostAgent::tear_down() {
  if (!layout_.cgroup.empty()) clear_cgroup(layout_.cgroup);
  return {};
}

Status HostAgent::read_input() {
  std::array<char, kMaxLineBytes> buffer{};
  const ssize_t got = ::read(STDIN, buffer.data(), buffer.size());
  if (got == 0) return fail(Errc::Closed, "the connection to the head's host has ended");
  if (got < 0)
    return errno == EINTR ? Status() : fail(errno_code(errno), "cannot read from the head's host");
  input_.append(buffer.data(), static_cast<std::size_t>(got));
  if (input_.size() > kMaxInput) return fail(Errc::TooLarge, "a line is too long");
  heard_ = monotonic_now();
  return {};
}

std::optional<std::string> HostAgent::next_line() {
  const auto end = input_.find('\n');
  if (end == input_.npos) return std::nullopt;
  auto line = input_.substr(0, end);
  input_.erase(0, end + 1);
  return line;
}

int run_host_agent(const std::string& programs, const std::string& pushed) {
  Supervisor({.registry = kRegistry, .keep = true, .command = {}},
             std::make_unique<HostAgent>(programs), UniqueFd())
      .run();
  std::error_code error;
  if (!pushed.empty()) std::filesystem::remove_all(pushed, error);
  say(Report::Kind::Gone, "");
  return kExitOk;
}

}  // namespace score::scout
