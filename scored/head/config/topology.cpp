#include "scored/head/config/topology.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/plain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace score::head {
namespace {

std::vector<std::string> read_list(ConfigSection& section, std::string_view key) {
  std::string text;
  section.read(key, text);
  if (text.empty()) return {};
  auto names = expand_hostlist(text);
  if (names) return *std::move(names);
  section.refuse(key, plain_text(names.error()));
  return {};
}

}  // namespace

std::vector<gang::Switch> read_topology(ConfigSection& root,
                                        const std::vector<std::string>& nodes) {
  std::vector<gang::Switch> switches;
  const std::set<std::string> known(nodes.begin(), nodes.end());
  for (auto& [name, section] : root.named_sections("topology")) {
    gang::Switch one;
    one.name = escape_terminal(name, 80);
    if (!is_host_name(name)) section.refuse("nodes", "switch names have letters, digits, '-' only");
    one.nodes = read_list(section, "nodes");
    one.switches = read_list(section, "switches");
    for (const std::string& node : one.nodes) {
      if (!known.contains(node)) {
        section.refuse("nodes", fmt::format("{} is not one of the nodes of [head]", node));
      }
    }
    switches.push_back(std::move(one));
  }
  if (switches.size() > limits::kMaxNodes) {
    root.section("topology").refuse(switches.front().name, "more switches than nodes can be");
  } else if (const auto made = gang::Topology::make(switches); !made) {
    root.section("topology").refuse(switches.front().name, plain_text(made.error()));
  }
  return switches;
}

}  // namespace score::head
