#include "scout/virtual/description.hpp"

#include "base/text/json_writer.hpp"
#include "base/text/plain.hpp"

#include <fmt/core.h>

#include <unistd.h>

namespace score::scout {

namespace {

void write_daemon(JsonWriter& json, const Layout& layout, const Daemons& daemons,
                  const std::string& name) {
  json.begin_object().field("name", name).field("pid", daemons.pid_of(name));
  json.field("log", layout.log_of(name));
  json.list("restart", std::vector<std::string>{layout.programs + "/score", "virtual", "--restart",
                                                name, layout.directory});
  json.end_object();
}

}  // namespace

std::string cluster_json(const Layout& layout, const Daemons& daemons) {
  JsonWriter json;
  json.begin_object().field("schema", "scored.virtual/1").field("directory", layout.directory);
  json.field("socket", layout.servers());
  json.field("address", layout.head_address + ":" + std::to_string(layout.head_port));
  json.field("cgroup", layout.cgroup).field("supervisor_pid", getpid());
  json.list("stop", std::vector<std::string>{layout.programs + "/score", "virtual", "--stop",
                                             layout.directory});
  json.key("head");
  write_daemon(json, layout, daemons, "head");
  if (daemons.heads() > 1) {
    json.key("head2");
    write_daemon(json, layout, daemons, "head2");
  }
  json.key("nodes").begin_array();
  for (const auto& node : daemons.nodes()) write_daemon(json, layout, daemons, node);
  json.end_array().key("launchers").begin_array();
  for (const auto& node : daemons.nodes()) write_daemon(json, layout, daemons, launcher_of(node));
  return json.end_array().end_object().text() + "\n";
}

std::vector<std::string> greeting_lines(const VirtualOptions& options, std::string_view page) {
  std::vector<std::string> lines;
  lines.push_back(
      fmt::format("Virtual cluster: {}, each with {}, {} of memory and {} of scratch; "
                  "slices of {}; \"exit\" removes it",
                  counted(options.nodes, "node"), counted(options.cores, "core"), options.memory,
                  options.scratch, format_duration(options.slice)));
  if (!page.empty()) {
    lines.push_back(fmt::format("Page:  {}  (\"scadm web-login\" opens it as you)", page));
  }
  lines.push_back(fmt::format("Try:   scrun -N {} -l sh -c 'echo $SCORE_NODENAME'", options.nodes));
  lines.emplace_back("       scq        lists the jobs; scnodes lists the nodes");
  lines.emplace_back("       sctop      shows the load, live; q ends it");
  return lines;
}

}  // namespace score::scout
