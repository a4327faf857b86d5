#include "scout/cluster/starter.hpp"

#include "base/limits.hpp"
#include "base/os/signals.hpp"
#include "base/os/spawn.hpp"
#include "scout/cluster/command_process.hpp"
#include "scout/cluster/control.hpp"
#include "scout/cluster/registry.hpp"

#include <CLI/CLI.hpp>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr std::size_t kMaxDescription = std::size_t{16} << 20U;

}  // namespace

Status Starter::start_supervisor() {
  auto pair = make_socket_pair(SOCK_SEQPACKET);
  if (!pair) return pair.error();
  const pid_t child = fork();
  if (child < 0) return fail(errno_code(errno), "fork");
  if (child == 0) {
    pair->first.reset();
    // With --keep the supervisor has a session of its own, so signals of the terminal do not reach
    // it.
    if (spec_.supervisor.keep && setsid() > 0) {
      const auto null = open_file("/dev/null", O_RDWR);
      for (int fd = 0; null && fd < 3; ++fd) dup2(null->get(), fd);
    }
    Supervisor(spec_.supervisor, spec_.make_cluster(), std::move(pair->second)).run();
    _exit(0);
  }
  socket_ = std::move(pair->first);
  return {};
}

int Starter::run() {
  constexpr int kHandled[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  const sigset_t set = base::signals_to_handle(kHandled);
  if (auto started = start_supervisor(); !started) return print_error(invocation_, started.error());
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  while (!done_) turn();
  if (spec_.supervisor.keep && is_up_ && !code_) return run_kept_command();
  if (code_) return *code_;
  // The supervisor was killed, so the clean-up is left to this process.
  print_error(invocation_, "the supervisor ended unexpectedly; removing the rest of the cluster");
  if (auto registry = Registry::open(spec_.supervisor.registry)) registry->sweep();
  return kExitError;
}

void Starter::turn() {
  std::array<pollfd, 2> fds = {{{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                {.fd = socket_.get(), .events = POLLIN, .revents = 0}}};
  if (::poll(fds.data(), fds.size(), -1) < 0) return;
  if (fds[0].revents != 0) on_signal();
  if (fds[1].revents != 0) on_message();
}

// The terminal has sent ^C and ^\ to the command already, so they are not forwarded.
void Starter::on_signal() {
  signalfd_siginfo info{};
  if (::read(signals_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return;
  const bool from_terminal = info.ssi_code == SI_KERNEL;
  if (from_terminal && is_up_) return;
  const auto message = fmt::format("signal {}", info.ssi_signo);
  (void)::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL);
}

void Starter::on_message() {
  std::array<char, 4096> buffer{};
  const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (got <= 0) {
    done_ = true;
    return;
  }
  const std::string message(buffer.data(), static_cast<std::size_t>(got));
  const auto rest = message.substr(std::min(message.size(), message.find(' ') + 1));
  if (message.starts_with("up ")) on_up(rest);
  if (message.starts_with("note ")) print_error(invocation_, rest);
  if (message.starts_with("error ")) code_ = print_error(invocation_, rest);
  if (message.starts_with("status ") && !code_)
    code_ = parse_number<int>(rest).value_or(kExitError);
}

void Starter::on_up(const std::string& directory) {
  is_up_ = true;
  layout_.directory = directory;
  layout_.programs = spec_.programs;
  if (spec_.print_json) {
    if (const auto text = read_file(layout_.description(), kMaxDescription)) print(*text);
  }
  done_ = spec_.supervisor.keep;
  if (!done_) return;
  tell(fmt::format("{} {}", spec_.title, directory));
  tell(fmt::format("use it:  export SCORED_SERVER={} PATH={}:$PATH{}", layout_.servers(),
                   layout_.programs, spec_.variables));
  tell(fmt::format("stop it: {}/score {} {}", layout_.programs, spec_.stop, directory));
}

int Starter::run_kept_command() const {
  if (spec_.supervisor.command.empty()) return kExitOk;
  const pid_t child = start_command(layout_, spec_.supervisor.command);
  int wait_status = 0;
  while (child > 0 && waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 ? shell_code(wait_status) : kExitError;
}

void add_programs_option(CLI::App& app, std::string& programs) {
  programs = own_directory();
  app.add_option("--programs", programs)->group("");
}

void add_slice_options(CLI::App& app, std::string& slice, std::uint32_t& slots) {
  app.add_option("--slice", slice, "Time slice (100ms)")->type_name("TIME");
  app.add_option("--slots", slots, "Rows of the gang matrix (64)")
      ->type_name("N")
      ->check(CLI::Range(1U, limits::kMaxSlots));
}

Result<Duration> parse_time(std::string_view option, const std::string& text) {
  const auto time = parse_duration(text);
  if (time && *time > Duration{0}) return time;
  return fail(Errc::Malformed, "{} '{}': use a time such as 30s", option,
              escape_terminal(text, 80));
}

int stop_cluster(const Invocation& invocation, const std::string& directory,
                 std::string_view kind) {
  if (is_alive(directory)) {
    const auto asked = ask_control(directory + "/control", "stop");
    if (!asked) return print_error(invocation, asked.error());
    if (wait_until_gone(directory)) return kExitOk;
    return print_error(invocation,
                       fmt::format("{}: the cluster has not stopped after 15 s", directory));
  }
  if (!std::filesystem::exists(directory + "/" + kLockFile)) {
    return print_error(invocation, fmt::format("no {} in {}", kind, escape_terminal(directory)));
  }
  const auto cleared = clear_directory(directory);
  return cleared ? kExitOk : print_error(invocation, cleared.error());
}

int list_clusters(const std::string& registry) {
  for (const auto& directory : Registry::living(registry)) print(directory + "\n");
  return kExitOk;
}

}  // namespace score::scout
