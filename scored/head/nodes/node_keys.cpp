// Generations are Unix times, so an administrator sees how old a key is, and a new cluster key has
// the generation from which on it counts. Each generation is greater than all before it, whatever
// the clock says.
#include "scored/head/nodes/node_keys.hpp"

#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"

#include <algorithm>
#include <utility>

namespace score::head {
namespace {

constexpr std::string_view kNone = "-";

std::string format_number(const std::optional<std::uint64_t>& number) {
  return number ? std::to_string(*number) : std::string(kNone);
}

Result<std::optional<std::uint64_t>> parse_generation(std::string_view text) {
  if (text == kNone) return std::optional<std::uint64_t>();
  const auto number = parse_number<std::uint64_t>(text);
  if (!number) return number.error();
  return std::optional(*number);
}

}  // namespace

Status NodeKeys::load() {
  const auto text = read_file(file_, limits::kMaxConfigBytes);
  if (!text && text.error().is(std::errc::no_such_file_or_directory)) return {};
  if (!text) return text.error();
  States states;
  for (const std::string_view line : split(*text, '\n')) {
    if (line.empty()) continue;
    const auto words = split(line, ' ');
    const bool is_whole = words.size() == 3 && is_host_name(words[0]);
    const auto current = is_whole ? parse_generation(words[1]) : fail(Errc::Malformed, "a line");
    const auto next = is_whole ? parse_generation(words[2]) : fail(Errc::Malformed, "a line");
    if (!current || !next || (!*current && !*next)) {
      return fail(Errc::Malformed,
                  "{}: '{}' is not a node and two key numbers; restore the file from a copy, or "
                  "every key that was revoked is accepted again",
                  file_, escape_terminal(line, 80));
    }
    states.insert_or_assign(std::string(words[0]), State{*current, *next});
    newest_ = std::max({newest_, current->value_or(0), next->value_or(0)});
  }
  states_ = std::move(states);
  return {};
}

const NodeKeys::State& NodeKeys::state(std::string_view node) const {
  static const State first;
  const auto found = states_.find(node);
  return found == states_.end() ? first : found->second;
}

bool NodeKeys::accepts(const proto::NodeIdentity& identity) const {
  const State& known = state(identity.node);
  return known.current == identity.generation || known.next == identity.generation;
}

std::uint64_t NodeKeys::wanted(std::string_view node) const {
  const State& known = state(node);
  return known.next ? *known.next : known.current.value_or(0);
}

std::vector<std::string> NodeKeys::rotate(const std::vector<std::string>& nodes,
                                          std::uint64_t now_s) {
  std::vector<std::string> waiting;
  std::ranges::copy_if(nodes, std::back_inserter(waiting),
                       [this](const std::string& node) { return state(node).next.has_value(); });
  if (!waiting.empty()) return waiting;
  newest_ = std::max(now_s, newest_ + 1);
  for (const std::string& node : nodes) states_[node].next = newest_;
  return nodes;
}

void NodeKeys::revoke(const std::vector<std::string>& nodes, std::uint64_t now_s) {
  newest_ = std::max(now_s, newest_ + 1);
  for (const std::string& node : nodes) states_[node] = {std::nullopt, newest_};
}

bool NodeKeys::used(const proto::NodeIdentity& identity) {
  if (state(identity.node).next != identity.generation) return false;
  states_[identity.node] = {identity.generation, std::nullopt};
  return true;
}

std::string NodeKeys::text() const {
  std::string text;
  for (const auto& [node, state] : states_) {
    text +=
        fmt::format("{} {} {}\n", node, format_number(state.current), format_number(state.next));
  }
  return text;
}

}  // namespace score::head
