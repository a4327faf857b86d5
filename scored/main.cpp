// This is scored, the daemon of a cluster's head or of one of its nodes.
#include "scored/node/run_node.hpp"
#ifdef SCORED_HAS_HEAD
#include "scored/head/process/run_head.hpp"
#endif

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct DaemonRole {
  std::string_view name;
  int (*run)(const std::vector<std::string>& arguments);
};

constexpr DaemonRole kRoles[] = {
#ifdef SCORED_HAS_HEAD
    {"head", &score::head::run_head},
#endif
    {"node", &score::node::run_node},
};

constexpr const char* kUsage =
    "usage: scored --role=head|node [OPTION]...\n"
    "       scored --version\n"
    "Each role has its own --help.\n";

// Returns the value of "--role=node" or "--role node"; the first one counts. Empty if there is
// none.
std::string_view find_role(const std::vector<std::string>& arguments) {
  constexpr std::string_view kOption = "--role";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    if (word == kOption && i + 1 < arguments.size()) return arguments[i + 1];
    if (word.starts_with("--role=")) return word.substr(kOption.size() + 1);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (std::find(arguments.begin(), arguments.end(), "--version") != arguments.end()) {
    std::puts("scored " SCORE_VERSION);
    return 0;
  }
  const std::string_view name = find_role(arguments);
  for (const DaemonRole& role : kRoles) {
    if (role.name == name) return role.run(arguments);
  }
  const bool wants_help = arguments.size() == 1 && arguments[0] == "--help";
  std::fputs(kUsage, wants_help ? stdout : stderr);
  return wants_help ? 0 : 2;
}
