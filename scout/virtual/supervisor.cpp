#include "scout/virtual/supervisor.hpp"

#include "base/os/cgroup.hpp"
#include "base/os/pmix_directory.hpp"
#include "base/text.hpp"
#include "scout/session/head_link.hpp"
#include "scout/virtual/command_process.hpp"
#include "scout/virtual/config_files.hpp"
#include "scout/virtual/description.hpp"
#include "scout/virtual/reaper.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr Duration kBootLimit = std::chrono::seconds{60};
constexpr std::uint16_t kHeadPort = 9901;  // as SCore's
constexpr int kBootTick_ms = 5;

// A random address of 127/8, which no other cluster of this host is likely to have, so that the
// cluster can use a fixed port.
std::string own_loopback_address() {
  const auto id = RequestId::random();
  const auto part = [&](unsigned shift) { return (id.low >> shift) % 254 + 1; };
  return fmt::format("127.{}.{}.{}", part(0), part(8), part(16));
}

bool may_use(const std::string& cgroup) {
  auto group = Cgroup::open(cgroup);
  if (!group) return false;
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const auto added = group->add(child);
  const auto killed = group->kill();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return added && killed;
}

// The MTU that frames with this much payload need, headers of PM, UDP and IP included.
std::uint32_t links_for(std::uint32_t payload) {
  constexpr std::uint32_t kUsual = 1500, kHeaders = 76;
  return std::max(kUsual, payload + kHeaders);
}

}  // namespace

Supervisor::Supervisor(VirtualOptions options, std::string programs, UniqueFd starter)
    : options_(std::move(options)), starter_(std::move(starter)) {
  layout_.programs = std::move(programs);
}

void Supervisor::run() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t set;
  sigfillset(&set);  // only SIGKILL ends us before everything is removed
  sigprocmask(SIG_SETMASK, &set, nullptr);
  signals_ = UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  boot_deadline_ = monotonic_now() + kBootLimit;
  if (auto booted = boot(); !booted) stop("error " + booted.error().message());
  while (state_ != State::Stopping) turn();
  tear_down();
}

Status Supervisor::boot() {
  auto registry = Registry::open();
  if (!registry) return registry.error();
  auto directory = registry->create();
  if (!directory) return directory.error();
  directory_ = std::move(*directory);
  layout_.directory = directory_->path;
  layout_.head_address = options_.netns ? NodeNetworks::kHeadAddress : own_loopback_address();
  layout_.head_port = kHeadPort;
  if (options_.netns) {
    auto networks = NodeNetworks::create(options_.nodes, links_for(options_.payload));
    if (!networks) return networks.error();
    networks_ = std::move(*networks);
  }
  auto status = make_cgroup();
  if (status) status = write_configuration(layout_, options_);
  if (!status) return status;
  auto control = ControlServer::open(layout_.control());
  if (!control) return control.error();
  control_ = std::move(*control);
  daemons_.emplace(layout_, options_, networks_);
  return daemons_->start_all();
}

// Not an error without one: the daemons then stop and continue processes by signals.
Status Supervisor::make_cgroup() {
  const auto base = geteuid() == 0 ? find_cgroup2_mount() : own_cgroup();
  if (!base || options_.no_cgroup) return {};
  const auto id = std::filesystem::path(layout_.directory).filename().native();
  const std::string path = *base + "/" + kCgroupPrefix + id;
  if (auto made = Cgroup::create(path); !made) return {};
  if (auto written = replace_file(layout_.directory + "/" + kCgroupFile, path, 0600); !written)
    return written;
  if (!may_use(path)) {
    clear_cgroup(path);
    return {};
  }
  layout_.cgroup = path;
  for (const auto& name : node_names(options_.nodes)) {
    if (auto made = Cgroup::create(layout_.cgroup_of(name)); !made) return made.error();
  }
  return {};
}

void Supervisor::turn() {
  std::array<pollfd, 3> fds = {
      {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
       {.fd = starter_ ? starter_.get() : -1, .events = POLLIN, .revents = 0},
       {.fd = control_ ? control_->fd() : -1, .events = POLLIN, .revents = 0}}};
  const int timeout = state_ == State::Booting ? kBootTick_ms : -1;
  if (::poll(fds.data(), fds.size(), timeout) < 0 && errno != EINTR)
    return stop("error poll failed");
  if (fds[0].revents != 0) on_signals();
  if (fds[1].revents != 0) on_starter();
  if (fds[2].revents != 0 && state_ == State::Up) on_control();
  if (state_ == State::Booting) check_up();
}

void Supervisor::check_up() {
  if (monotonic_now() > boot_deadline_) {
    return stop(fmt::format("error the nodes were not up within {}; {}",
                            format_duration(kBootLimit), last_log_line("head")));
  }
  if (access(layout_.socket().c_str(), F_OK) != 0) return;
  auto head = HeadLink::connect(layout_.socket());
  if (!head) return;
  const auto info = head->ask<wire::Info>(wire::GetInfo(), std::chrono::seconds{5});
  if (info && info->nodes_up() == options_.nodes) on_up();
}

void Supervisor::on_up() {
  state_ = State::Up;
  describe_cluster();
  send_to_starter("up " + layout_.directory);
  if (options_.command.empty() || options_.keep) return;
  command_ = start_command(layout_, options_.command);
  if (command_ < 0) stop(fmt::format("error fork: {}", std::strerror(errno)));
}

void Supervisor::on_starter() {
  std::array<char, 64> buffer{};
  const ssize_t got = ::recv(starter_.get(), buffer.data(), buffer.size() - 1, 0);
  if (got <= 0) {
    starter_.reset();
    if (!options_.keep || state_ == State::Booting) stop("");
    return;
  }
  const std::string_view text(buffer.data(), static_cast<std::size_t>(got));
  const auto signal = parse_number<int>(text.substr(std::min<std::size_t>(text.size(), 7)));
  if (!text.starts_with("signal ") || !signal) return;
  if (command_ <= 0) return stop(fmt::format("status {}", 128 + *signal));
  kill(command_, *signal);  // not collected yet, so the pid is its own
}

void Supervisor::on_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo == SIGTERM) stop(fmt::format("status {}", 128 + SIGTERM));
  }
  int wait_status = 0;
  for (;;) {
    const pid_t pid = waitpid(-1, &wait_status, WNOHANG);
    if (pid <= 0) return;
    on_child(pid, wait_status);
  }
}

void Supervisor::on_child(pid_t pid, int wait_status) {
  if (pid == command_) {
    command_ = -1;
    return stop(fmt::format("status {}", shell_code(wait_status)));
  }
  if (!daemons_) return;
  const auto name = daemons_->forget(pid);
  if (name && state_ == State::Booting) {
    stop(fmt::format("error {} ended with {}: {}", *name, shell_code(wait_status),
                     last_log_line(*name)));
  }
}

// The last line of a daemon's log: why it did not start.
std::string Supervisor::last_log_line(const std::string& daemon) const {
  const auto log = read_file(layout_.log_of(daemon), 1U << 20U);
  if (!log) return "";
  const auto text = trim(*log);
  return escape_terminal(text.substr(text.rfind('\n') + 1), 500);
}

void Supervisor::on_control() {
  control_->serve([this](const std::string& request) { return answer(request); });
}

std::string Supervisor::answer(const std::string& request) {
  if (request == "stop") {
    stop("status 0");
    return "ok";
  }
  constexpr std::string_view kRestart = "restart ";
  if (!request.starts_with(kRestart)) return "error unknown request";
  const auto name = request.substr(kRestart.size());
  if (const auto started = daemons_->restart(name); !started)
    return "error " + started.error().message();
  describe_cluster();
  return fmt::format("ok {}", daemons_->pid_of(name));
}

void Supervisor::describe_cluster() {
  const auto text = cluster_json(layout_, *daemons_);
  if (const auto written = replace_file(layout_.description(), text, 0600); !written) {
    send_to_starter("error " + written.error().message());
  }
}

void Supervisor::stop(const std::string& message) {
  if (state_ == State::Stopping) return;
  state_ = State::Stopping;
  if (!message.empty()) send_to_starter(message);
}

void Supervisor::send_to_starter(const std::string& message) {
  if (!starter_) return;
  // The end of the starter is noticed when reading.
  (void)::send(starter_.get(), message.data(), message.size(), MSG_NOSIGNAL);
}

// First the cgroup, then all our descendants: as the subreaper we also have those that forked
// twice.
void Supervisor::tear_down() {
  control_.reset();
  if (!layout_.cgroup.empty() && !clear_cgroup(layout_.cgroup)) {
    send_to_starter("error processes remain in " + layout_.cgroup);
  }
  for (const pid_t pid : kill_descendants(std::chrono::seconds{10})) {
    send_to_starter(fmt::format("error process {} cannot be killed", pid));
  }
  if (!layout_.cgroup.empty()) clear_cgroup(layout_.cgroup);
  remove_abandoned_pmix_directories();
  if (!directory_) return;
  if (auto removed = remove_files(directory_->path); !removed) {
    send_to_starter("error " + removed.error().message());
  }
}

}  // namespace score::scout
