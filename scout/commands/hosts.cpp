// score hosts prints the names in host lists, one per line.
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "scout/commands/commands.hpp"

#include <CLI/CLI.hpp>

#include <cstdlib>

namespace score::scout {

int hosts_main(const Invocation& invocation) {
  std::vector<std::string> lists;
  bool is_short = false;
  CLI::App app;
  describe(app, invocation, "Prints the names in host lists, one per line");
  app.add_flag("--list", is_short, "Print one list in its short form instead");
  app.add_option("list", lists, "Host list such as 'node[00-03]'; default: $SCORE_NODELIST")
      ->type_name("LIST");
  if (const auto code = parse(app, invocation)) return *code;
  const char* variable = std::getenv("SCORE_NODELIST");
  if (lists.empty() && variable != nullptr) lists.emplace_back(variable);
  if (lists.empty()) return print_error(invocation, "no list given, and SCORE_NODELIST is not set");
  std::vector<std::string> names;
  for (const auto& list : lists) {
    const auto expanded = expand_hostlist(list);
    if (!expanded) {
      return print_error(invocation,
                         expanded.error().with_context("'{}'", escape_terminal(list, 80)));
    }
    names.insert(names.end(), expanded->begin(), expanded->end());
  }
  std::string text;
  for (const auto& name : names) text += name + "\n";
  print(is_short ? compress_in_order(names) + "\n" : text);
  return kExitOk;
}

}  // namespace score::scout
