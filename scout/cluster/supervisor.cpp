#include "scout/cluster/supervisor.hpp"

#include "base/os/pmix_directory.hpp"
#include "base/text.hpp"
#include "scout/cluster/command_process.hpp"
#include "scout/cluster/reaper.hpp"
#include "scout/session/command.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr int kServeTick_ms = 1000;

// Returns true if the command is a shell without arguments, which reads commands from the terminal.
bool is_interactive_shell(const std::vector<std::string>& command) {
  constexpr std::array<std::string_view, 8> kShells = {"bash", "sh",  "dash", "zsh",
                                                       "fish", "ksh", "csh",  "tcsh"};
  if (command.size() != 1 || isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0) return false;
  const auto name = std::string_view(command[0]).substr(command[0].rfind('/') + 1);
  return std::ranges::find(kShells, name) != kShells.end();
}

}  // namespace

Result<pid_t> OwnCluster::restart(const std::string& name) {
  if (const auto started = daemons_->restart(name); !started) return started.error();
  return daemons_->pid_of(name);
}

Supervisor::Supervisor(SupervisorOptions options, std::unique_ptr<OwnCluster> cluster,
                       UniqueFd starter)
    : options_(std::move(options)), cluster_(std::move(cluster)), starter_(std::move(starter)) {}

void Supervisor::run() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t set;
  sigfillset(&set);  // only SIGKILL ends us before everything is removed
  sigprocmask(SIG_SETMASK, &set, nullptr);
  signals_ = UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  stop_if_failed(boot());
  while (state_ != State::Stopping) turn();
  tear_down();
}

Status Supervisor::boot() {
  auto registry = Registry::open(options_.registry);
  if (!registry) return registry.error();
  auto directory = registry->create();
  if (!directory) return directory.error();
  directory_ = std::move(*directory);
  auto booted = cluster_->boot(directory_->path);
  if (!booted) return booted;
  auto control = ControlServer::open(cluster_->layout().control());
  if (!control) return control.error();
  control_ = std::move(*control);
  return {};
}

void Supervisor::turn() {
  std::array<pollfd, 4> fds = {
      {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
       {.fd = starter_ ? starter_.get() : -1, .events = POLLIN, .revents = 0},
       {.fd = control_ ? control_->fd() : -1, .events = POLLIN, .revents = 0},
       {.fd = cluster_->fd(), .events = POLLIN, .revents = 0}}};
  const int timeout = state_ == State::Booting ? OwnCluster::kBootTick_ms
                      : cluster_->fd() >= 0    ? kServeTick_ms
                                               : -1;
  if (::poll(fds.data(), fds.size(), timeout) < 0 && errno != EINTR)
    return stop("error cannot wait for events: poll failed");
  if (fds[0].revents != 0) on_signals();
  if (fds[1].revents != 0) on_starter();
  if (fds[2].revents != 0 && state_ == State::Up) on_control();
  if (state_ != State::Stopping) stop_if_failed(cluster_->serve());
  pass_notes();
  if (state_ == State::Booting) check_up();
}

void Supervisor::check_up() {
  const auto is_up = cluster_->is_up();
  pass_notes();
  if (!is_up) return stop_if_failed(is_up.error());
  if (*is_up) on_up();
}

void Supervisor::on_up() {
  state_ = State::Up;
  describe_cluster();
  send_to_starter("up " + directory_->path);
  if (options_.command.empty() || options_.keep) return;
  if (is_interactive_shell(options_.command)) {
    for (const auto& line : cluster_->greeting()) tell(line);
  }
  command_ = start_command(cluster_->layout(), options_.command);
  if (command_ < 0) stop(fmt::format("error cannot start the command: {}", std::strerror(errno)));
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
  kill(command_, *signal);  // not reaped yet, so the pid is still its own
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
  stop_if_failed(cluster_->on_child(pid, shell_code(wait_status)));
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
  const auto pid = cluster_->restart(request.substr(kRestart.size()));
  if (!pid) return "error " + words_of(pid.error());
  describe_cluster();
  return fmt::format("ok {}", *pid);
}

void Supervisor::describe_cluster() {
  const auto path = cluster_->layout().description();
  if (const auto written = replace_file(path, cluster_->describe(), 0600); !written) {
    send_to_starter("error " + written.error().message());
  }
}

void Supervisor::stop(const std::string& message) {
  if (state_ == State::Stopping) return;
  state_ = State::Stopping;
  if (!message.empty()) send_to_starter(message);
}

void Supervisor::stop_if_failed(const Status& status) {
  if (!status) stop("error " + words_of(status.error()));
}

void Supervisor::pass_notes() {
  for (const auto& note : cluster_->take_notes()) send_to_starter("note " + note);
}

void Supervisor::send_to_starter(const std::string& message) {
  if (!starter_) return;
  // The end of the starter is noticed when the socket is read.
  (void)::send(starter_.get(), message.data(), message.size(), MSG_NOSIGNAL);
}

// The cluster ends its own parts first, then all our descendants are killed. As the subreaper we
// also have those that forked twice.
void Supervisor::tear_down() {
  control_.reset();
  for (const auto& left : cluster_->tear_down()) send_to_starter("error " + left);
  for (const pid_t pid : kill_descendants(std::chrono::seconds{10})) {
    send_to_starter(fmt::format("error process {} cannot be killed", pid));
  }
  cluster_->tear_down();
  pass_notes();
  remove_abandoned_pmix_directories();
  if (!directory_) return;
  if (auto removed = remove_files(directory_->path); !removed) {
    send_to_starter("error " + removed.error().message());
  }
}

}  // namespace score::scout
