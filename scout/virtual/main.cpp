// score virtual: starts real daemons for N nodes on this machine, runs a command on them, and
// removes everything. This process only starts the supervisor, forwards signals and returns the
// exit code, so it can be killed at any time.
#include "base/units.hpp"
#include "scout/run/score_options.hpp"
#include "scout/session/command.hpp"
#include "scout/virtual/command_process.hpp"
#include "scout/virtual/control.hpp"
#include "scout/virtual/reaper.hpp"
#include "scout/virtual/registry.hpp"
#include "scout/virtual/supervisor.hpp"

#include <CLI/CLI.hpp>

#include <array>
#include <csignal>
#include <cstdlib>
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

// Open MPI's ranks yield while they wait if they know that there are more ranks than processors.
// Each virtual node counts all processors of the machine as its own, so the cluster sets this.
constexpr const char* kYieldVariable = "OMPI_MCA_mpi_yield_when_idle";

constexpr Bytes kLeastPayload(1024), kMostPayload(15'952);

struct Request {
  VirtualOptions options;
  std::string programs;  // where `score` is
  std::string slice;
  std::string payload;
  std::string node_timeout;
  std::string stop;
  std::string restart;
  std::string status;
  bool list = false;
};

void add_options(CLI::App& app, Request& request) {
  auto& options = request.options;
  app.add_option("--programs", request.programs)->group("");  // from `score`, which starts us
  app.add_option("--nodes", options.nodes, "Virtual nodes (4)")
      ->type_name("N")
      ->check(CLI::Range(1U, 1024U));
  app.add_option("--cores", options.cores, "Cores per node, as the scheduler sees them (1)")
      ->type_name("C")
      ->check(CLI::Range(1U, limits::kMaxCoresPerNode));
  app.add_option("--memory", options.memory, "Memory per node, as the scheduler sees it (1G)")
      ->type_name("SIZE");
  app.add_option("--slice", request.slice, "Time slice (100ms)")->type_name("TIME");
  app.add_option("--slots", options.slots, "Rows of the gang matrix (8)")
      ->type_name("N")
      ->check(CLI::Range(1U, limits::kMaxSlots));
  app.add_option("--node-timeout", request.node_timeout,
                 "Silence of a node that ends its jobs (30s)")
      ->type_name("TIME");
  app.add_flag("--switch-always", options.switch_always,
               "Switch at every slice boundary, even when no other job competes");
  app.add_option("--channels", options.channels, "Network channels per node (16)")
      ->type_name("N")
      ->check(CLI::Range(1U, 4096U));
  app.add_option("--payload", request.payload,
                 "Largest frame payload of jobs; with --netns also sets the MTU (1424)")
      ->type_name("SIZE");
  app.add_option("--device", options.device, "Network device of jobs between nodes (udp)")
      ->type_name("udp|ethernet[:MODE]|ofi[:PROVIDER]")
      ->check(CLI::IsMember(
          {"udp", "ethernet", "ethernet:ring", "ethernet:xdp", "ofi", "ofi:tcp", "ofi:shm"}));
  app.add_option("--links", options.links, "Links of that device to each node (1)")
      ->type_name("N")
      ->check(CLI::Range(1U, 4U));
  app.add_option("--switch-mode", options.switch_mode,
                 "How a network channel passes from job to job (clock)")
      ->type_name("clock|barrier")
      ->check(CLI::IsMember({"clock", "barrier"}));
  app.add_option("--control", options.control, "How the daemons reach each other (tls)")
      ->type_name("pm|tls")
      ->check(CLI::IsMember({"pm", "tls"}));
  app.add_flag("--netns", options.netns, "Put each node into its own network namespace (root)");
  app.add_flag("--node-metrics", options.node_metrics,
               "Serve /metrics on each node; its port is in metrics.port in the node's directory");
  app.add_flag("--no-cgroup", options.no_cgroup,
               "Use no cgroups: stop and continue jobs by signals");
  app.add_flag("--keep", options.keep, "Keep the cluster running; print how to use and stop it");
  app.add_flag("--print-json", options.print_json,
               "Print pids, directories and addresses once it is up");
  app.add_option("--stop", request.stop, "Stop the kept cluster in DIR")->type_name("DIR");
  app.add_option("--restart", request.restart,
                 "Kill and restart one daemon (head, node05) of the cluster in DIR")
      ->type_name("NAME DIR");
  app.add_option("--status", request.status,
                 "Print pids, directories and addresses of the cluster in DIR")
      ->type_name("DIR");
  app.add_flag("--list", request.list, "Print the directories of your running clusters");
  app.add_option("command", options.command,
                 "Command to run on the cluster; its exit code is returned")
      ->type_name("COMMAND [ARGUMENT...]");
}

Status check_options(Request& request) {
  auto& options = request.options;
  if (!request.slice.empty()) {
    const auto slice = parse_duration(request.slice);
    if (!slice || *slice < limits::kMinQuantum || *slice > limits::kMaxQuantum) {
      return fail(Errc::Malformed, "--slice '{}': use a time from {} to {}", request.slice,
                  format_duration(limits::kMinQuantum), format_duration(limits::kMaxQuantum));
    }
    options.slice = *slice;
  }
  if (!request.node_timeout.empty()) {
    const auto timeout = parse_duration(request.node_timeout);
    if (!timeout || *timeout <= Duration{0}) {
      return fail(Errc::Malformed, "--node-timeout '{}': use a time such as 30s",
                  request.node_timeout);
    }
    options.node_timeout = *timeout;
  }
  if (const auto memory = parse_bytes(options.memory); !memory) {
    return memory.error().with_context("--memory '{}'", options.memory);
  }
  if (!request.payload.empty()) {
    const auto payload = parse_bytes(request.payload);
    if (!payload || *payload < kLeastPayload || *payload > kMostPayload) {
      return fail(Errc::Malformed, "--payload '{}': use a size from {} to {}", request.payload,
                  kLeastPayload.value(), kMostPayload.value());
    }
    options.payload = static_cast<std::uint32_t>(payload->value());
  }
  if (options.is_ethernet() && !options.netns) {
    return fail(Errc::Malformed, "--device ethernet needs --netns");
  }
  if (options.is_ethernet() && options.links > 1) {
    return fail(Errc::Malformed, "--links needs --device udp or ofi: a node has one interface");
  }
  if (options.netns && geteuid() != 0) return fail(Errc::Denied, "--netns needs root");
  if (options.command.empty() && !options.keep) {
    return fail(Errc::Malformed, "no command given; give one or --keep (try score virtual --help)");
  }
  return {};
}

// ---- commands to a running cluster

int stop_cluster(const Invocation& invocation, const std::string& directory) {
  if (is_alive(directory)) {
    const auto asked = ask_control(directory + "/control", "stop");
    if (!asked) return complain(invocation, asked.error());
    if (wait_until_gone(directory)) return kExitOk;
    return complain(invocation,
                    fmt::format("{}: the cluster has not stopped after 15 s", directory));
  }
  if (!std::filesystem::exists(directory + "/" + kLockFile)) {
    return complain(invocation,
                    fmt::format("no virtual cluster in {}", escape_terminal(directory)));
  }
  const auto cleared = clear_directory(directory);
  return cleared ? kExitOk : complain(invocation, cleared.error());
}

int restart_daemon(const Invocation& invocation, const Request& request) {
  if (request.options.command.size() != 1)
    return complain(invocation, "--restart needs a daemon and a directory: --restart NAME DIR");
  const auto pid =
      ask_control(request.options.command[0] + "/control", "restart " + request.restart);
  if (!pid) return complain(invocation, pid.error());
  print(*pid + "\n");
  return kExitOk;
}

int print_status(const Invocation& invocation, const std::string& directory) {
  const auto text = read_file(directory + "/cluster.json", std::size_t{16} << 20U);
  if (!text)
    return complain(invocation,
                    fmt::format("no virtual cluster in {}", escape_terminal(directory)));
  print(*text);
  return kExitOk;
}

int list_clusters(const Invocation& invocation) {
  const auto registry = Registry::open();
  if (!registry) return complain(invocation, registry.error());
  for (const auto& directory : registry->living()) print(directory + "\n");
  return kExitOk;
}

// ---- starting one

class Starter {
 public:
  Starter(const Invocation& invocation, const Request& request)
      : invocation_(invocation), options_(request.options) {
    layout_.programs = request.programs;
  }

  int run();

 private:
  Status start_supervisor();
  void turn();
  void on_message();
  void on_signal();
  void on_up(const std::string& directory);
  int run_kept_command() const;

  const Invocation& invocation_;
  const VirtualOptions& options_;
  UniqueFd socket_;
  UniqueFd signals_;
  Layout layout_;
  std::optional<int> code_;
  bool is_up_ = false;
  bool done_ = false;
};

Status Starter::start_supervisor() {
  auto pair = make_socket_pair(SOCK_SEQPACKET);
  if (!pair) return pair.error();
  const pid_t child = fork();
  if (child < 0) return fail(errno_code(errno), "fork");
  if (child == 0) {
    pair->first.reset();
    // With --keep a session of its own: signals of the terminal do not reach it.
    if (options_.keep && setsid() > 0) {
      const auto null = open_file("/dev/null", O_RDWR);
      for (int fd = 0; null && fd < 3; ++fd) dup2(null->get(), fd);
    }
    Supervisor(options_, layout_.programs, std::move(pair->second)).run();
    _exit(0);
  }
  socket_ = std::move(pair->first);
  return {};
}

int Starter::run() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&set, signal);
  if (auto started = start_supervisor(); !started) return complain(invocation_, started.error());
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  while (!done_) turn();
  if (options_.keep && is_up_ && !code_) return run_kept_command();
  if (code_) return *code_;
  // The supervisor was killed, so the clean-up is left to this process.
  complain(invocation_, "the supervisor died; removing what is left of the cluster");
  if (auto registry = Registry::open()) registry->sweep();
  return kExitError;
}

void Starter::turn() {
  std::array<pollfd, 2> fds = {{{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                {.fd = socket_.get(), .events = POLLIN, .revents = 0}}};
  if (::poll(fds.data(), fds.size(), -1) < 0) return;
  if (fds[0].revents != 0) on_signal();
  if (fds[1].revents != 0) on_message();
}

// The terminal has sent ^C and ^\ to the command already.
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
  if (message.starts_with("error ")) code_ = complain(invocation_, rest);
  if (message.starts_with("status ") && !code_)
    code_ = parse_number<int>(rest).value_or(kExitError);
}

void Starter::on_up(const std::string& directory) {
  is_up_ = true;
  layout_.directory = directory;
  if (options_.print_json) print_status(invocation_, directory);
  if (!options_.keep) return;
  done_ = true;
  tell(fmt::format("virtual cluster: {} nodes in {}", options_.nodes, directory));
  const char* yields = std::getenv(kYieldVariable);
  tell(fmt::format("use it:  export SCORED_SERVER={} PATH={}:$PATH{}", layout_.socket(),
                   layout_.programs,
                   yields == nullptr ? "" : fmt::format(" {}={}", kYieldVariable, yields)));
  tell(fmt::format("stop it: {}/score virtual --stop {}", layout_.programs, directory));
}

int Starter::run_kept_command() const {
  if (options_.command.empty()) return kExitOk;
  const pid_t child = start_command(layout_, options_.command);
  int wait_status = 0;
  while (child > 0 && waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 ? shell_code(wait_status) : kExitError;
}

bool shares_processors(const VirtualOptions& options) {
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  const std::uint64_t cores = std::uint64_t{options.nodes} * options.cores;
  return processors > 0 && cores > static_cast<std::uint64_t>(processors);
}

int virtual_main(const Invocation& invocation) {
  Request request;
  std::error_code error;
  request.programs = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  CLI::App app;
  describe(app, invocation,
           "Boots a cluster of virtual nodes (real daemons on loopback), runs a command with "
           "SCORED_SERVER and PATH set, and leaves nothing behind");
  add_options(app, request);
  auto split = split_command(app, invocation.args, "");
  if (!split) return complain(invocation, split.error());
  if (const auto code = parse(app, {.name = invocation.name, .args = split->options})) return *code;
  request.options.command = std::move(split->command);
  if (!request.stop.empty()) return stop_cluster(invocation, request.stop);
  if (!request.restart.empty()) return restart_daemon(invocation, request);
  if (!request.status.empty()) return print_status(invocation, request.status);
  if (request.list) return list_clusters(invocation);
  if (auto sound = check_options(request); !sound) return complain(invocation, sound.error());
  if (shares_processors(request.options)) setenv(kYieldVariable, "1", 0);
  return Starter(invocation, request).run();
}

}  // namespace

}  // namespace score::scout

int main(int argc, char** argv) {
  using namespace score::scout;
  std::signal(SIGPIPE, SIG_IGN);
  const Invocation invocation{.name = "score virtual",
                              .args = {argv + std::min(argc, 1), argv + argc}};
  try {
    return virtual_main(invocation);
  } catch (const std::exception& error) {
    return complain(invocation, error.what());
  }
}
