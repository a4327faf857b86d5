#include "scout/stacks/stack_report.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/json_writer.hpp"
#include "proto/documents/stack_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace score::scout {
namespace {

using Ranks = std::set<std::uint32_t>;

constexpr std::size_t kMaxListBytes = 60;  // of a list of ranks in text
constexpr std::size_t kMaxGroupsShown = 16;
constexpr std::size_t kMaxStatesShown = 32;
constexpr std::size_t kPlaceFrames = 3;  // of the place of a group
constexpr std::size_t kMaxIndent = 60;

Ranks ranks_of(const std::string& text) {
  if (text.empty()) return {};
  return proto::parse_ranks(text, limits::kMaxTasksPerJob).value_or(Ranks());
}

std::string ranks_text(const Ranks& ranks) {
  std::string list = proto::rank_list(ranks);
  if (list.size() > kMaxListBytes) {
    list.resize(list.rfind(',', kMaxListBytes));
    list += ",...";
  }
  return list;
}

std::string count_text(const Ranks& ranks) {
  return fmt::format("{} rank{}: {}", ranks.size(), ranks.size() == 1 ? "" : "s",
                     ranks_text(ranks));
}

std::string frame_text(const wire::StackTree::Frame& frame) {
  const auto plain = [](const std::string& text) { return escape_terminal(text, text.size() * 4); };
  if (frame.place().empty()) return plain(frame.function());
  return fmt::format("{} ({})", plain(frame.function()), plain(frame.place()));
}

bool is_of_mpi(const std::string& function) {
  return function.starts_with("MPI_") || function.starts_with("PMPI_");
}

// A View has the tree with the links downwards, and the ranks below each frame.
struct View {
  explicit View(const wire::StackTree& from) : tree(from) {
    const auto count = static_cast<std::size_t>(tree.frames_size());
    children.resize(count);
    below.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      // No head sends a frame before its caller; such a frame counts as an outermost one.
      parents.push_back(at(i).parent() > i ? 0 : at(i).parent());
      (parents[i] == 0 ? roots : children[parents[i] - 1]).push_back(i);
      ends.push_back(ranks_of(at(i).ranks()));
    }
    for (std::size_t i = count; i-- > 0;) {
      below[i].insert(ends[i].begin(), ends[i].end());
      if (parents[i] != 0) below[parents[i] - 1].insert(below[i].begin(), below[i].end());
    }
    const auto has_fewer = [this](std::size_t a, std::size_t b) {
      return below[a].size() < below[b].size();
    };
    std::ranges::stable_sort(roots, has_fewer);
    for (auto& list : children) std::ranges::stable_sort(list, has_fewer);
  }

  [[nodiscard]] const wire::StackTree::Frame& at(std::size_t i) const {
    return tree.frames(static_cast<int>(i));
  }

  // Returns the frames from the outermost one to this one.
  [[nodiscard]] std::vector<std::size_t> path(std::size_t i) const {
    std::vector<std::size_t> path{i};
    while (parents[path.back()] != 0) path.push_back(parents[path.back()] - 1);
    std::ranges::reverse(path);
    return path;
  }

  const wire::StackTree& tree;
  std::vector<std::size_t> parents;  // [frame] 1 + index; 0: none
  std::vector<std::size_t> roots;
  std::vector<std::vector<std::size_t>> children;  // [frame]
  std::vector<Ranks> ends;                         // [frame] whose stacks end there
  std::vector<Ranks> below;                        // [frame] and in its callees
};

std::string place_of(const View& view, const std::vector<std::size_t>& path) {
  std::string text;
  for (std::size_t i = 0; i < std::min(path.size(), kPlaceFrames); ++i) {
    if (i > 0) text += " < ";
    text += frame_text(view.at(path[path.size() - 1 - i]));
  }
  return text;
}

// Writes a line per frame. It indents only where ranks part, so that deep stacks stay readable.
void write_tree(const View& view, std::string& out) {
  struct Next {
    std::size_t frame;
    std::size_t indent;
    bool parts;
  };

  std::vector<Next> next;
  const auto push = [&](const std::vector<std::size_t>& frames, std::size_t indent, bool parts) {
    for (auto it = frames.rbegin(); it != frames.rend(); ++it) next.push_back({*it, indent, parts});
  };
  push(view.roots, 0, true);
  while (!next.empty()) {
    const auto [frame, indent, parts] = next.back();
    next.pop_back();
    const std::string space(std::min(indent, kMaxIndent), ' ');
    if (parts) out += fmt::format("{}[{}]\n", space, count_text(view.below[frame]));
    out += fmt::format("{}  {}\n", space, frame_text(view.at(frame)));
    const bool is_straight = view.children[frame].size() == 1 &&
                             view.below[view.children[frame].front()] == view.below[frame];
    push(view.children[frame], is_straight ? indent : indent + 2, !is_straight);
  }
}

std::string wait_text(const wire::RankState& state) {
  std::string text = "waits for a message";
  if (!state.call().empty())
    text = "waits in " + escape_terminal(state.call(), limits::kMaxCallName);
  if (state.from() > 0) text += fmt::format(" from rank {}", state.from() - 1);
  if (state.message_tag() > 0) text += fmt::format(", tag {}", state.message_tag() - 1);
  if (state.bytes() > 0) text += fmt::format(", {} bytes", state.bytes());
  return text;
}

std::string list_text(const std::string& ranks) {
  return escape_terminal(ranks, kMaxListBytes);
}

}  // namespace

std::vector<StackGroup> groups_of(const wire::StackTree& tree) {
  const View view(tree);
  std::map<std::vector<std::size_t>, Ranks> groups;
  for (std::size_t i = 0; i < view.ends.size(); ++i) {
    if (view.ends[i].empty()) continue;
    auto path = view.path(i);
    const auto mpi = std::ranges::find_if(
        path, [&view](std::size_t frame) { return is_of_mpi(view.at(frame).function()); });
    if (mpi != path.end()) path.erase(mpi + 1, path.end());
    groups[path].insert(view.ends[i].begin(), view.ends[i].end());
  }
  std::vector<StackGroup> sorted;
  for (auto& [path, ranks] : groups) sorted.push_back({std::move(ranks), place_of(view, path)});
  std::ranges::stable_sort(sorted, {}, [](const StackGroup& group) { return group.ranks.size(); });
  return sorted;
}

std::vector<std::string> state_lines(const wire::Stacks& stacks) {
  std::map<std::string, Ranks> same;
  for (const auto& state : stacks.states()) {
    if (state.waits()) same[wait_text(state)].insert(state.rank());
    if (state.received() > 0) {
      same[fmt::format("has not taken {} message{} of ranks {}", state.received(),
                       state.received() == 1 ? "" : "s", list_text(state.received_from()))]
          .insert(state.rank());
    }
    if (!state.sending_to().empty()) {
      same["has sent messages that have not arrived at ranks " + list_text(state.sending_to())]
          .insert(state.rank());
    }
  }
  std::vector<std::pair<std::string, Ranks>> sorted(same.begin(), same.end());
  std::ranges::stable_sort(sorted, {}, [](const auto& line) { return line.second.size(); });
  std::vector<std::string> lines;
  for (const auto& [text, ranks] : sorted) lines.push_back(count_text(ranks) + "  " + text);
  return lines;
}

std::string stacks_text(const wire::Stacks& stacks, const std::string& job) {
  constexpr double kNsPerMs = 1e6;
  std::string out =
      fmt::format("Job {}: {} tasks, stopped within {:.0f} ms, read within {:.0f} ms\n", job,
                  stacks.tasks(), static_cast<double>(stacks.stop_ns()) / kNsPerMs,
                  static_cast<double>(stacks.total_ns()) / kNsPerMs);
  for (const auto& problem : stacks.tree().problems()) {
    out += fmt::format("Not read: {}: {}\n", count_text(ranks_of(problem.ranks())),
                       escape_terminal(problem.text(), limits::kMaxErrorTextBytes));
  }
  if (stacks.tree().dropped() > 0) {
    out += fmt::format("Left out {} stacks: the tree is too large\n", stacks.tree().dropped());
  }
  const auto groups = groups_of(stacks.tree());
  if (!groups.empty()) out += "\nWhere the ranks are, the rarest place first:\n";
  for (std::size_t i = 0; i < std::min(groups.size(), kMaxGroupsShown); ++i) {
    out += fmt::format("  {}  {}\n", count_text(groups[i].ranks), groups[i].place);
  }
  if (groups.size() > kMaxGroupsShown)
    out += fmt::format("  {} more places\n", groups.size() - kMaxGroupsShown);
  const auto states = state_lines(stacks);
  if (!states.empty()) out += "\nMessages over PM:\n";
  for (std::size_t i = 0; i < std::min(states.size(), kMaxStatesShown); ++i)
    out += "  " + states[i] + "\n";
  if (states.size() > kMaxStatesShown)
    out += fmt::format("  {} more\n", states.size() - kMaxStatesShown);
  if (stacks.tree().frames_size() == 0) return out;
  out += "\nStacks:\n";
  write_tree(View(stacks.tree()), out);
  return out;
}

std::string stacks_json(const wire::Stacks& stacks, std::uint64_t job) {
  constexpr double kNsPerS = 1e9;
  JsonWriter json;
  json.begin_object().field("schema", "scored.stacks/1").field("job", job);
  json.field("tasks", stacks.tasks());
  json.field("stop_s", static_cast<double>(stacks.stop_ns()) / kNsPerS);
  json.field("total_s", static_cast<double>(stacks.total_ns()) / kNsPerS);
  json.key("groups").begin_array();
  for (const auto& group : groups_of(stacks.tree())) {
    json.begin_object().field("ranks", proto::rank_list(group.ranks));
    json.field("count", group.ranks.size()).field("place", group.place).end_object();
  }
  json.end_array().key("frames").begin_array();
  for (const auto& frame : stacks.tree().frames()) {
    json.begin_object().field("parent", static_cast<std::int64_t>(frame.parent()) - 1);
    json.field("function", frame.function()).field("place", frame.place());
    json.field("ranks", frame.ranks()).field("threads", frame.threads()).end_object();
  }
  json.end_array().key("messages").begin_array();
  for (const auto& state : stacks.states()) {
    json.begin_object().field("rank", state.rank()).field("waits", state.waits());
    json.field("call", state.call()).field("from", state.from() - 1);
    json.field("tag", state.message_tag() - 1).field("bytes", state.bytes());
    json.field("received", state.received()).field("received_from", state.received_from());
    json.field("sending_to", state.sending_to()).end_object();
  }
  json.end_array().key("problems").begin_array();
  for (const auto& problem : stacks.tree().problems()) {
    json.begin_object().field("ranks", problem.ranks()).field("text", problem.text()).end_object();
  }
  json.end_array().field("dropped", stacks.tree().dropped());
  return json.end_object().take() + "\n";
}

}  // namespace score::scout
