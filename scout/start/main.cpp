// score start runs a cluster of one user on several hosts, without root and without installation.
// `score start` and `score stop` run this program here; links run it as the host agent of a host.
#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "base/units.hpp"
#include "scout/cluster/starter.hpp"
#include "scout/run/score_options.hpp"
#include "scout/session/command.hpp"
#include "scout/start/find_hosts.hpp"
#include "scout/start/host_agent.hpp"
#include "scout/start/host_cluster.hpp"

#include <CLI/CLI.hpp>

namespace score::scout {

namespace {

constexpr const char* kRegistry = "scored-start";

struct Request {
  StartOptions options;
  HostSource source;
  std::string programs;  // directory of `score`
  std::string ssh;
  std::string push = "auto";
  std::string limit = "60s";
  std::string hooks;  // file
  bool print_json = false;
  std::vector<std::string> command;
};

void add_options(CLI::App& app, Request& request) {
  auto& options = request.options;
  add_programs_option(app, request.programs);
  app.add_option("--hosts", request.source.list, "Hosts to use: a,b,user@c,node[01-16]")
      ->type_name("LIST");
  app.add_option("--hostfile", request.source.file,
                 "File with one host per line, or one line per slot")
      ->type_name("FILE");
  app.add_option("--min-hosts", options.min_hosts, "Minimum number of hosts to start with (all)")
      ->type_name("N")
      ->check(CLI::Range(1U, limits::kMaxNodes));
  app.add_option("--limit", request.limit, "Time for all hosts to come up (60s)")
      ->type_name("TIME");
  app.add_option("--ssh", request.ssh, "ssh program with its options, separated by blanks (ssh)")
      ->type_name("COMMAND");
  app.add_option("--push", request.push,
                 "Send the programs to hosts; auto sends them where this version is missing (auto)")
      ->type_name("auto|always|never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_option("--directory", options.directory,
                 "Directory on the hosts for sent programs (/tmp)")
      ->type_name("DIR");
  app.add_option("--head-address", options.head_address,
                 "Address of this host at which the hosts reach the head (found by each host)")
      ->type_name("HOST");
  app.add_option("--port", options.head.port, "Port of the head for nodes (any free port)")
      ->type_name("PORT");
  app.add_option("--memory", options.memory, "Memory of each host for jobs (all)")
      ->type_name("SIZE");
  app.add_option("--hooks", request.hooks, "File with the table [hooks] for the head and all hosts")
      ->type_name("FILE");
  add_slice_options(app, options.head.slice, options.head.slots);
  app.add_flag("--print-json", request.print_json,
               "Print directory, socket and pids once it is up");
  app.add_option("command", request.command,
                 "Command to run; the cluster ends with it, and its exit code is returned")
      ->type_name("COMMAND [ARGUMENT...]");
}

Status check_options(Request& request) {
  auto& options = request.options;
  const auto limit = parse_time("--limit", request.limit);
  if (!limit) return limit.error();
  options.limit = *limit;
  if (!options.head.slice.empty()) {
    if (auto slice = parse_time("--slice", options.head.slice); !slice) return slice.error();
  }
  if (!options.memory.empty() && !parse_bytes(options.memory)) {
    return fail(Errc::Malformed, "--memory '{}': use a size such as 8G",
                escape_terminal(options.memory, 80));
  }
  if (!options.head_address.empty()) {
    auto& address = options.head_address;
    if (address.starts_with('[') && address.ends_with(']')) {
      address = address.substr(1, address.size() - 2);
    }
    if (!is_head_host(address)) {
      return fail(Errc::Malformed, "--head-address '{}' is neither a name nor an address",
                  escape_terminal(address, 80));
    }
  }
  if (!request.hooks.empty()) {
    auto lines = read_file(request.hooks, limits::kMaxConfigBytes);
    if (!lines) return lines.error().with_context("--hooks");
    options.head.hooks = *std::move(lines) + "\n";
  }
  if (!request.ssh.empty()) {
    options.ssh.clear();
    for (const auto word : split(request.ssh, ' ')) {
      if (!word.empty()) options.ssh.emplace_back(word);
    }
    if (options.ssh.empty()) return fail(Errc::Malformed, "--ssh: no program given");
  }
  options.push = request.push == "always"  ? Push::Always
                 : request.push == "never" ? Push::Never
                                           : Push::Auto;
  return {};
}

Status take_hosts(Request& request) {
  auto found = find_hosts(request.source);
  if (!found) return found.error();
  auto& options = request.options;
  options.hosts = std::move(found->hosts);
  options.via = found->via;
  options.own_address = found->own_address;
  if (options.memory.empty()) options.memory = found->memory;
  if (options.min_hosts > options.hosts.size()) {
    return fail(Errc::Malformed, "--min-hosts {}: only {} given", options.min_hosts,
                options.hosts.size() == 1 ? "1 host is"
                                          : fmt::format("{} hosts are", options.hosts.size()));
  }
  return {};
}

int start_cluster(const Invocation& invocation, const Request& request) {
  StarterSpec spec;
  spec.supervisor = {
      .registry = kRegistry, .keep = request.command.empty(), .command = request.command};
  spec.make_cluster = [&] {
    return std::make_unique<HostCluster>(request.options, request.programs);
  };
  spec.programs = request.programs;
  spec.print_json = request.print_json;
  spec.title = fmt::format("cluster: {},", counted(request.options.hosts.size(), "host"));
  spec.stop = "stop";
  return Starter(invocation, std::move(spec)).run();
}

int start_main(const Invocation& invocation) {
  Request request;
  CLI::App app;
  describe(
      app, invocation,
      "Starts a cluster of your own on hosts that you reach by ssh, or on those of your Slurm, "
      "PBS or Flux allocation, and leaves nothing behind");
  add_options(app, request);
  if (const auto code = parse_with_command(app, invocation, request.command)) return *code;
  if (auto good = check_options(request); !good) return print_error(invocation, good.error());
  if (auto taken = take_hosts(request); !taken) return print_error(invocation, taken.error());
  return start_cluster(invocation, request);
}

int stop_main(const Invocation& invocation) {
  std::string directory, programs;
  bool list = false;
  CLI::App app;
  describe(app, invocation, "Stops a cluster that score start has started");
  add_programs_option(app, programs);
  app.add_flag("--list", list, "Print the directories of your running clusters");
  app.add_option("directory", directory,
                 "Directory of the cluster; required if you have several clusters")
      ->type_name("DIR");
  if (const auto code = parse(app, invocation)) return *code;
  if (list) return list_clusters(kRegistry);
  if (directory.empty()) {
    const auto living = Registry::living(kRegistry);
    if (living.empty()) return print_error(invocation, "you have no running cluster");
    if (living.size() > 1) {
      return print_error(invocation, fmt::format("you have {} clusters; give one of {}",
                                                 living.size(), fmt::join(living, " ")));
    }
    directory = living.front();
  }
  return stop_cluster(invocation, directory, "cluster of score start");
}

int version_main(const Invocation&) {
  print(std::string(SCORE_VERSION) + "\n");
  return score::kExitOk;
}

int host_agent_main(const Invocation& invocation) {
  const auto& args = invocation.args;
  const bool is_pushed = args.size() == 2 && args[0] == "--pushed";
  return run_host_agent(own_directory(), is_pushed ? args[1] : "");
}

}  // namespace

}  // namespace score::scout

int main(int argc, char** argv) {
  using namespace score::scout;
  const std::string word = argc > 1 ? argv[1] : "start";
  const Invocation invocation{.name = word == "stop" ? "score stop" : "score start",
                              .args = {argv + std::min(argc, 2), argv + argc}};
  return run_main(invocation, word == "stop"                 ? stop_main
                              : word == "--host-agent"       ? host_agent_main
                              : word == "--programs-version" ? version_main
                                                             : start_main);
}
