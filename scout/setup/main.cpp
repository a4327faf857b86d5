// scored-setup makes this host a head or a node.
#include "scout/session/command.hpp"
#include "scout/setup/setup.hpp"

#include <CLI/CLI.hpp>

#include <sys/stat.h>

namespace score::scout {
namespace {

constexpr const char* kUsage =
    "Usage: scored-setup head --nodes LIST    make this host the head of a cluster\n"
    "       scored-setup node --head HOST --token TOKEN    make this host a node\n"
    "       scored-setup token NODES    print new lines for nodes, on the head\n\n"
    "Options:\n  -h,--help  Print this help and exit\n  --version  Print the version and exit\n\n"
    "`scored-setup head --help` and so on explain the options.\n";

void add_address(CLI::App& app, HeadSetupOptions& options) {
  app.add_option("--address", options.address,
                 "Name or address of this host for the nodes (the host's name)")
      ->type_name("HOST");
}

int head_main(const Invocation& invocation) {
  HeadSetupOptions options;
  CLI::App app;
  describe(app, invocation,
           "Makes this host the head of a cluster and prints a line for each node");
  app.add_option("--nodes", options.nodes, "The cluster's nodes, such as node[00-63]")
      ->type_name("LIST");
  app.add_option("--cluster", options.cluster, "Name of the cluster (initially the host's name)")
      ->type_name("NAME");
  add_address(app, options);
  app.add_option("--port", options.port, "Port on which the head accepts nodes (7421)")
      ->type_name("PORT")
      ->check(CLI::Range(1, 65535));
  app.add_option("--allow", options.allow,
                 "Additional network from which nodes connect; may be given several times")
      ->type_name("NETWORK");
  app.add_option("--login-nodes", options.login_nodes, "Nodes on which users can use the commands")
      ->type_name("LIST");
  if (const auto code = parse(app, invocation)) return *code;
  const auto done = set_up_head(options);
  return done ? kExitOk : print_error(invocation, done.error());
}

int node_main(const Invocation& invocation) {
  NodeSetupOptions options;
  CLI::App app;
  describe(app, invocation, "Makes this host a node of a cluster");
  app.add_option("--head", options.head, "The cluster's head (as configured, on a node)")
      ->type_name("HOST[:PORT]");
  app.add_option("--token", options.token, "Token that scored-setup printed on the head")
      ->type_name("TOKEN")
      ->required();
  app.add_option("--name", options.name, "Name of this node (the host's name)")->type_name("NAME");
  app.add_flag("--login", options.login, "Allow the users of this host to use the commands here");
  app.add_flag("--ignore-users", options.ignore_users, "Do not compare users with the head's");
  if (const auto code = parse(app, invocation)) return *code;
  const auto done = set_up_node(options);
  return done ? kExitOk : print_error(invocation, done.error());
}

int token_main(const Invocation& invocation) {
  HeadSetupOptions options;
  CLI::App app;
  describe(app, invocation, "Prints a new line for each of these nodes; each is valid for an hour");
  app.add_option("nodes", options.nodes, "Nodes of the cluster")->type_name("NODES")->required();
  add_address(app, options);
  if (const auto code = parse(app, invocation)) return *code;
  const auto done = print_tokens(options);
  return done ? kExitOk : print_error(invocation, done.error());
}

int setup_main(const Invocation& self) {
  auto args = self.args;
  const std::string word = args.empty() ? "" : args.front();
  if (word == "-h" || word == "--help") return print(kUsage), kExitOk;
  if (word == "--version") return print(std::string("scored ") + SCORE_VERSION + "\n"), kExitOk;
  if (args.empty()) return print_error(self, "no command given; give head or node");
  args.erase(args.begin());
  const Invocation rest{.name = "scored-setup " + word, .args = std::move(args)};
  if (word == "head") return head_main(rest);
  if (word == "node") return node_main(rest);
  if (word == "token") return token_main(rest);
  return print_error(self, fmt::format("'{}' is neither head, node nor token (try --help)",
                                       escape_terminal(word, 80)));
}

}  // namespace
}  // namespace score::scout

int main(int argc, char** argv) {
  using namespace score::scout;
  ::umask(022);
  return run_main({.name = "scored-setup", .args = {argv + std::min(argc, 1), argv + argc}},
                  setup_main);
}
