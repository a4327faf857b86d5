// score virtual starts real daemons for N nodes on this machine, runs a command on them, and
// removes everything. This process only starts the supervisor, forwards signals and returns the
// exit code, so it can be killed at any time.
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "base/units.hpp"
#include "scout/cluster/control.hpp"
#include "scout/cluster/starter.hpp"
#include "scout/run/score_options.hpp"
#include "scout/session/command.hpp"
#include "scout/virtual/virtual_cluster.hpp"

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <filesystem>
#include <unistd.h>

namespace score::scout {

namespace {

// Open MPI's ranks yield while they wait if Open MPI knows that there are more ranks than
// processors. Each virtual node counts all processors of the machine as its own, so the cluster
// sets this variable.
constexpr const char* kYieldVariable = "OMPI_MCA_mpi_yield_when_idle";
// Open MPI 5 does not use the loopback interface between nodes unless it is told to, and these
// nodes have no other. It refuses to start with a list of interfaces to leave out as well.
constexpr const char* kInterfaceVariable = "OMPI_MCA_btl_tcp_if_include";
constexpr const char* kLeftOutVariable = "OMPI_MCA_btl_tcp_if_exclude";

constexpr Bytes kLeastPayload(1024), kMostPayload(15'952);

struct Request {
  VirtualOptions options;
  std::string programs;  // directory of `score`
  std::string slice;
  std::string payload;
  std::string node_timeout;
  std::string stop;
  std::string restart;
  std::string status;
  bool list = false;
};

void add_network_options(CLI::App& app, Request& request) {
  auto& options = request.options;
  app.add_option("--channels", options.channels, "Network channels per node (16)")
      ->type_name("N")
      ->check(CLI::Range(1U, 4096U));
  app.add_option("--payload", request.payload,
                 "Largest frame payload of jobs; with --netns also sets the MTU (1424)")
      ->type_name("SIZE");
  app.add_option("--device", options.device, "Network device of jobs between nodes (udp)")
      ->type_name("udp|ethernet|ofi[:PROVIDER]")
      ->check(CLI::IsMember({"udp", "ethernet", "ofi", "ofi:tcp", "ofi:shm"}));
  app.add_option("--links", options.links, "Number of links of that device to each node (1)")
      ->type_name("N")
      ->check(CLI::Range(1U, 4U));
  app.add_option("--switch-mode", options.switch_mode,
                 "How a network channel is handed from job to job (clock)")
      ->type_name("clock|barrier")
      ->check(CLI::IsMember({"clock", "barrier"}));
  app.add_option("--control", options.control, "How the daemons communicate (pm)")
      ->type_name("pm|tls")
      ->check(CLI::IsMember({"pm", "tls"}));
}

void add_options(CLI::App& app, Request& request) {
  auto& options = request.options;
  add_programs_option(app, request.programs);
  app.add_option("--nodes", options.nodes, "Number of virtual nodes (4)")
      ->type_name("N")
      ->check(CLI::Range(1U, 1024U));
  app.add_option("--heads", options.heads, "Number of heads; the second one follows the first (1)")
      ->type_name("N")
      ->check(CLI::Range(1U, 2U));
  app.add_option("--cores", options.cores, "Cores per node for the scheduler (1)")
      ->type_name("C")
      ->check(CLI::Range(1U, limits::kMaxCoresPerNode));
  app.add_option("--memory", options.memory, "Memory per node for the scheduler (1G)")
      ->type_name("SIZE");
  app.add_option("--scratch", options.scratch, "Scratch per node for jobs' volumes (1G)")
      ->type_name("SIZE");
  app.add_option(
         "--scratch-dir", options.scratch_directory,
         "Directory for scratch, in which the cluster makes its own (the cluster's directory)")
      ->type_name("DIR");
  add_slice_options(app, request.slice, options.slots);
  app.add_option("--node-timeout", request.node_timeout,
                 "Time without contact after which the jobs of a node end (30s)")
      ->type_name("TIME");
  app.add_option("--placement", options.placement, "How jobs share the nodes (matrix)")
      ->type_name("matrix|dqt")
      ->check(CLI::IsMember({"matrix", "dqt"}));
  app.add_flag("--switch-always", options.switch_always,
               "Switch at every slice boundary, even when no other job competes");
  add_network_options(app, request);
  app.add_flag("--netns", options.netns, "Put each node into its own network namespace (root)");
  app.add_option("--node-config", options.node_config,
                 "File with lines for [node] and more tables of these nodes' configuration")
      ->type_name("NODES=FILE")
      ->allow_extra_args(false);
  app.add_option("--hooks", options.hooks, "File with the table [hooks] for the head and all nodes")
      ->type_name("FILE");
  app.add_flag("--node-metrics", options.node_metrics,
               "Serve /metrics on each node; its port is in metrics.port in the node's directory");
  app.add_flag("--no-cgroup", options.no_cgroup,
               "Do not use cgroups: stop and continue jobs by signals");
  app.add_flag("--keep", options.keep, "Keep the cluster running; print how to use and stop it");
  app.add_flag("--print-json", options.print_json,
               "Print pids, directories and addresses once it is up");
  app.add_option("--stop", request.stop, "Stop the kept cluster in DIR")->type_name("DIR");
  app.add_option("--restart", request.restart,
                 "Kill and restart one daemon (head, head2, node05) of the cluster in DIR")
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
    const auto timeout = parse_time("--node-timeout", request.node_timeout);
    if (!timeout) return timeout.error();
    options.node_timeout = *timeout;
  }
  if (const auto memory = parse_bytes(options.memory); !memory) {
    return memory.error().with_context("--memory '{}'", options.memory);
  }
  if (const auto scratch = parse_bytes(options.scratch); !scratch) {
    return scratch.error().with_context("--scratch '{}'", options.scratch);
  }
  if (!options.scratch_directory.empty()) {
    std::error_code error;
    options.scratch_directory = std::filesystem::canonical(options.scratch_directory, error);
    if (error) return Error(error, "--scratch-dir");
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
    return fail(Errc::Malformed,
                "--links needs --device udp or ofi, because a node has one interface");
  }
  if (options.netns && geteuid() != 0) return fail(Errc::Denied, "--netns needs root");
  if (options.command.empty() && !options.keep) {
    return fail(Errc::Malformed, "no command given; give one or --keep (try score virtual --help)");
  }
  return {};
}

// ---- commands to a running cluster

int restart_daemon(const Invocation& invocation, const Request& request) {
  if (request.options.command.size() != 1)
    return print_error(invocation, "--restart needs a daemon and a directory: --restart NAME DIR");
  const auto pid =
      ask_control(request.options.command[0] + "/control", "restart " + request.restart);
  if (!pid) return print_error(invocation, pid.error());
  print(*pid + "\n");
  return kExitOk;
}

int print_status(const Invocation& invocation, const std::string& directory) {
  const auto text = read_file(directory + "/cluster.json", std::size_t{16} << 20U);
  if (!text)
    return print_error(invocation,
                       fmt::format("no virtual cluster in {}", escape_terminal(directory)));
  print(*text);
  return kExitOk;
}

// ---- starting one

int start_cluster(const Invocation& invocation, const Request& request) {
  const auto& options = request.options;
  StarterSpec spec;
  spec.supervisor = {
      .registry = kVirtualRegistry, .keep = options.keep, .command = options.command};
  spec.make_cluster = [&] { return std::make_unique<VirtualCluster>(options, request.programs); };
  spec.programs = request.programs;
  spec.print_json = options.print_json;
  spec.title = fmt::format("virtual cluster: {} in", counted(options.nodes, "node"));
  for (const char* name : {kYieldVariable, kInterfaceVariable}) {
    const char* value = std::getenv(name);
    if (value != nullptr) spec.variables += fmt::format(" {}={}", name, value);
  }
  spec.stop = "virtual --stop";
  return Starter(invocation, std::move(spec)).run();
}

// The user's own values win.
void set_variables(const VirtualOptions& options) {
  if (shares_processors(options)) setenv(kYieldVariable, "1", 0);
  const bool is_limited = std::getenv(kLeftOutVariable) != nullptr;
  if (!options.netns && !is_limited) setenv(kInterfaceVariable, "lo", 0);
}

int virtual_main(const Invocation& invocation) {
  Request request;
  CLI::App app;
  describe(app, invocation,
           "Boots a cluster of virtual nodes (real daemons on loopback), runs a command with "
           "SCORED_SERVER and PATH set, and leaves nothing behind");
  add_options(app, request);
  if (const auto code = parse_with_command(app, invocation, request.options.command)) return *code;
  if (!request.stop.empty()) return stop_cluster(invocation, request.stop, "virtual cluster");
  if (!request.restart.empty()) return restart_daemon(invocation, request);
  if (!request.status.empty()) return print_status(invocation, request.status);
  if (request.list) return list_clusters(kVirtualRegistry);
  if (auto sound = check_options(request); !sound) return print_error(invocation, sound.error());
  set_variables(request.options);
  return start_cluster(invocation, request);
}

}  // namespace

}  // namespace score::scout

int main(int argc, char** argv) {
  using namespace score::scout;
  return run_main({.name = "score virtual", .args = {argv + std::min(argc, 1), argv + argc}},
                  virtual_main);
}
