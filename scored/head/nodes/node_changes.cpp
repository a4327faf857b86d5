#include "scored/head/nodes/node_changes.hpp"

#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "scored/head/store/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace score::head {
namespace {

std::string path_in(const std::string& state_dir) {
  return fmt::format("{}/{}", state_dir, kNodeChangesFile);
}

}  // namespace

Result<NodeChanges> NodeChanges::load(const std::string& state_dir) {
  const std::string path = path_in(state_dir);
  const auto text = read_file(path, limits::kMaxConfigBytes);
  if (!text && text.error().is(std::errc::no_such_file_or_directory)) return NodeChanges();
  if (!text) return text.error();
  auto changes = parse(*text);
  if (!changes) return changes.error().with_context("{}", path);
  return changes;
}

Result<NodeChanges> NodeChanges::parse(std::string_view text) {
  NodeChanges changes;
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    const std::string node(line.substr(1));
    if ((line[0] != '+' && line[0] != '-') || !is_host_name(node)) {
      return fail(Errc::Malformed, "expected +NODE or -NODE, not '{}'", escape_terminal(line, 80));
    }
    line[0] == '+' ? changes.add(node) : changes.remove(node);
  }
  return changes;
}

void NodeChanges::write(const std::string& state_dir) const {
  if (auto written = replace_file(path_in(state_dir), text(), 0600); !written) {
    log_error("Cannot write the list of added and removed nodes", kv("err", written.error()));
  }
}

std::string NodeChanges::text() const {
  std::string text;
  for (const std::string& node : added_) text += fmt::format("+{}\n", node);
  for (const std::string& node : removed_) text += fmt::format("-{}\n", node);
  return text;
}

void NodeChanges::add(const std::string& node) {
  removed_.erase(node);
  added_.insert(node);
}

void NodeChanges::remove(const std::string& node) {
  added_.erase(node);
  removed_.insert(node);
}

std::vector<std::string> NodeChanges::applied_to(const std::vector<std::string>& configured) const {
  std::vector<std::string> nodes;
  std::ranges::copy_if(configured, std::back_inserter(nodes),
                       [this](const std::string& node) { return !removed_.contains(node); });
  std::ranges::copy_if(added_, std::back_inserter(nodes), [&configured](const std::string& node) {
    return std::ranges::find(configured, node) == configured.end();
  });
  return nodes;
}

Status apply_node_changes(HeadConfig& config) {
  const auto changes = NodeChanges::load(config.state_dir);
  if (!changes) return changes.error();
  config.nodes = changes->applied_to(config.configured_nodes);
  return {};
}

}  // namespace score::head
