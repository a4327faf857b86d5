// scout runs a command on every node at once, outside the timetable, and prints equal outputs once.
#include "base/text/hostlist.hpp"
#include "scout/commands/commands.hpp"
#include "scout/run/front_end.hpp"
#include "scout/run/score_options.hpp"
#include "scout/session/session.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <unistd.h>

namespace score::scout {

namespace {

struct ScoutOptions {
  CommonOptions common;
  std::string only_nodes;
  std::string except_nodes;
  std::string timeout;
  bool label = false;
  std::vector<std::string> command;
  std::string socket;
};

// Returns the nodes of -w, else all that are up and not drained; without those of -x.
Result<std::vector<std::string>> chosen_nodes(HeadLink& head, const ScoutOptions& options) {
  const auto list = head.ask<wire::NodeList>(wire::ListNodes());
  if (!list) return list.error();
  const auto wanted = expand_hostlist(options.only_nodes);
  if (!wanted)
    return wanted.error().with_context("-w '{}'", escape_terminal(options.only_nodes, 80));
  const auto unwanted = expand_hostlist(options.except_nodes);
  if (!unwanted)
    return unwanted.error().with_context("-x '{}'", escape_terminal(options.except_nodes, 80));
  const auto has = [](const auto& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::string> names;
  for (const auto& node : list->nodes()) {
    const bool usable = node.state() == wire::NodeStatus::UP && !node.drained();
    const bool chosen = wanted->empty() ? usable : has(*wanted, node.name());
    if (chosen && !has(*unwanted, node.name())) names.push_back(node.name());
  }
  for (const auto& name : *wanted) {
    const auto known = [&](const auto& node) { return node.name() == name; };
    if (std::none_of(list->nodes().begin(), list->nodes().end(), known)) {
      return fail(Errc::NotFound, "no node {}", name);
    }
  }
  if (names.empty()) return fail(Errc::NotFound, "no node is up");
  return names;
}

// Joins the words into one line for the shell, as rsh does.
Result<wire::Submit> make_command(const ScoutOptions& options, const std::string& line,
                                  const std::vector<std::string>& nodes) {
  RunOptions run;
  run.programs.emplace_back().command = {"/bin/sh", "-c", line};
  run.job_name = "scout";
  run.input = "none";
  run.mpi = "none";
  run.wall_time = options.timeout;
  run.keep_going = true;
  run.nodes = std::to_string(nodes.size());
  run.tasks_per_node = 1;
  // Without -w the job takes all nodes that are up.
  if (!options.only_nodes.empty()) run.only_nodes = compress_hostlist(nodes);
  run.except_nodes = options.except_nodes;
  run.allow_root = geteuid() == 0;
  auto submission = make_submission(run);
  if (!submission) return submission.error();
  submission->mutable_resources()->set_overlay(true);
  submission->mutable_spec()->set_scout(true);
  return submission;
}

Result<int> run_line(const Invocation& invocation, const ScoutOptions& options,
                     const std::string& line) {
  auto head = reach_head(options.common.server, options.socket);
  if (!head) return head.error();
  const auto nodes = chosen_nodes(*head, options);
  if (!nodes) return nodes.error();
  auto submission = make_command(options, line, *nodes);
  if (!submission) return submission.error();
  FrontEndOptions front;
  front.invocation = invocation;
  front.socket = options.socket;
  front.submission = std::move(*submission);
  front.reads_input = false;
  front.style = options.common.json ? OutputStyle::Json
                : options.label     ? OutputStyle::Labelled
                                    : OutputStyle::Gathered;
  front.json = options.common.json;
  front.bold = use_color(options.common, STDOUT_FILENO);
  return FrontEnd(std::move(front), std::move(*head)).run();
}

// Runs commands from standard input, one per line.
int run_lines(const Invocation& invocation, const ScoutOptions& options) {
  const bool asks = isatty(STDIN_FILENO) == 1;
  int worst = kExitOk;
  std::string line;
  for (;;) {
    if (asks) std::cerr << "scout> " << std::flush;
    if (!std::getline(std::cin, line)) return worst;
    if (trim(line).empty()) continue;
    const auto code = run_line(invocation, options, line);
    worst = std::max(worst, code ? *code : print_error(invocation, code.error()));
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

}  // namespace

int scout_main(const Invocation& invocation) {
  ScoutOptions options;
  CLI::App app;
  describe(app, invocation,
           "Runs a shell command on every node at once and prints equal outputs once. "
           "Without a command, it reads commands from standard input");
  add_server_option(app, options.common);
  add_json_option(app, options.common);
  app.add_option("-w,--nodelist", options.only_nodes, "Run on these nodes")->type_name("NODES");
  app.add_option("-x,--exclude", options.except_nodes, "Do not run on these nodes")
      ->type_name("NODES");
  app.add_option("--timeout", options.timeout,
                 "End the command after TIME; a bare number means minutes")
      ->type_name("TIME");
  app.add_flag("-l,--label", options.label,
               "Print lines as they arrive, with \"rank: \" before each");
  app.add_option("--color", options.common.color, "auto, always or never; NO_COLOR is honoured")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_option("command", options.command, "Command to run")->type_name("COMMAND [ARGUMENT...]");
  std::vector<std::string> command;
  if (const auto code = parse_with_command(app, invocation, command)) return *code;
  const auto server = find_server(options.common.server);
  if (!server) return print_error(invocation, server.error());
  options.socket = *server;
  if (command.empty()) return run_lines(invocation, options);
  const auto code = run_line(invocation, options, joined(command));
  return code ? *code : print_error(invocation, code.error());
}

}  // namespace score::scout
