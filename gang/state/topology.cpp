// The switches below a switch are numbered one after the other, so the leaves below it are a span.
// To choose nodes, the spans are tried from the smallest one on. Within the first one that has
// room, leaves are added in the order of their room, the largest one first, until they hold the
// job.
#include "gang/state/topology.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace score::gang {

using base::Errc;
using base::fail;
using base::Result;

// ---- the tree -----------------------------------------------------------------------------------

class Topology::Builder {
 public:
  explicit Builder(const std::vector<Switch>& switches) {
    for (const Switch& one : switches) all_.emplace(one.name, &one);
  }

  Result<Topology> build() {
    std::set<std::string> below;
    for (const auto& [name, one] : all_) {
      if (one->nodes.empty() == one->switches.empty()) {
        return fail(Errc::Malformed, "switch {}: give either nodes or switches", name);
      }
      for (const std::string& child : one->switches) {
        if (!all_.contains(child)) {
          return fail(Errc::NotFound, "switch {}: there is no switch {}", name, child);
        }
        if (!below.insert(child).second) {
          return fail(Errc::Exists, "switch {}: another switch has switch {} already", name, child);
        }
      }
    }
    for (const auto& [name, one] : all_) {
      if (below.contains(name)) continue;
      if (auto added = add(*one); !added) return added.error();
    }
    if (const auto in_cycle = std::ranges::find_if(
            all_, [this](const auto& entry) { return !seen_.contains(entry.first); });
        in_cycle != all_.end()) {
      return fail(Errc::Malformed, "switch {} is below itself", in_cycle->first);
    }
    // Several trees, and nodes of no switch, are connected in a way that nothing is known about.
    out_.spans_.push_back({0, static_cast<Leaf>(out_.names_.size() + 1)});
    std::ranges::stable_sort(out_.spans_, {}, &Span::size);
    return std::move(out_);
  }

 private:
  // A switch is added once, because it is below one other at most; so this ends.
  Result<void> add(const Switch& one) {
    seen_.insert(one.name);
    const Span span{static_cast<Leaf>(out_.names_.size()), 0};
    if (!one.nodes.empty()) {
      for (const std::string& node : one.nodes) {
        if (!out_.leaf_of_.emplace(node, span.first).second) {
          return fail(Errc::Exists, "switch {}: another switch has {} already", one.name, node);
        }
      }
      out_.names_.push_back(one.name);
    }
    for (const std::string& child : one.switches) {
      if (auto added = add(*all_.at(child)); !added) return added;
    }
    out_.spans_.push_back({span.first, static_cast<Leaf>(out_.names_.size())});
    return {};
  }

  std::map<std::string, const Switch*> all_;
  std::set<std::string> seen_;
  Topology out_;
};

Result<Topology> Topology::make(const std::vector<Switch>& switches) {
  if (switches.empty()) return Topology();
  return Builder(switches).build();
}

Topology::Leaf Topology::leaf_of(const std::string& node) const {
  const auto found = leaf_of_.find(node);
  return found == leaf_of_.end() ? static_cast<Leaf>(names_.size()) : found->second;
}

// ---- choice -------------------------------------------------------------------------------------

namespace {

using ByLeaf = std::vector<std::vector<Candidate>>;  // [leaf]

std::uint64_t tasks_of(const std::vector<Candidate>& candidates) {
  return std::accumulate(candidates.begin(), candidates.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Candidate& c) { return sum + c.tasks; });
}

// Adds leaves, the one with most room first, until they hold as many nodes as wanted.
std::optional<Choice> choose_within(const Shape& shape, std::vector<Topology::Leaf> leaves,
                                    const ByLeaf& by_leaf, std::size_t nodes) {
  std::ranges::stable_sort(leaves, std::greater(), [&by_leaf](Topology::Leaf leaf) {
    return std::tuple(tasks_of(by_leaf[leaf]), by_leaf[leaf].size());
  });
  std::vector<Candidate> room;
  for (const Topology::Leaf leaf : leaves) {
    room.insert(room.end(), by_leaf[leaf].begin(), by_leaf[leaf].end());
    if (room.size() < nodes) continue;
    std::vector<Candidate> all = room;
    auto choice = choose(shape, all);
    if (choice && choice->nodes.size() >= nodes) return choice;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Choice> Topology::choose(const Shape& shape, std::span<const Leaf> leaves,
                                       std::vector<Candidate> candidates) const {
  if (empty()) return gang::choose(shape, candidates);
  ByLeaf by_leaf(names_.size() + 1);
  std::unordered_map<NodeIndex, std::uint32_t> load;
  for (const Candidate& one : candidates) {
    by_leaf[leaves[one.node]].push_back(one);
    load.emplace(one.node, one.load);
  }
  auto best = gang::choose(shape, candidates);
  if (!best || best->nodes.size() < 2) return best;
  const std::size_t nodes = best->nodes.size();
  std::optional<std::pair<std::uint64_t, std::uint64_t>> best_room;  // and load
  Leaf size = 0;
  for (const Span& span : spans_) {
    if (best_room && span.size() > size) break;
    std::vector<Leaf> within(span.size());
    std::iota(within.begin(), within.end(), span.first);
    std::uint64_t room = 0;
    for (const Leaf leaf : within) room += tasks_of(by_leaf[leaf]);
    if (room < shape.tasks) continue;
    auto choice = choose_within(shape, std::move(within), by_leaf, nodes);
    if (!choice) continue;
    std::uint64_t sum = 0;
    for (const NodeIndex node : choice->nodes) sum += load.at(node);
    if (best_room && *best_room <= std::pair(room, sum)) continue;
    best_room = {room, sum};
    size = span.size();
    best = std::move(choice);
  }
  return best;
}

std::size_t count_leaves(std::span<const Topology::Leaf> leaves, std::span<const NodeIndex> nodes) {
  std::set<Topology::Leaf> seen;
  for (const NodeIndex node : nodes) seen.insert(leaves[node]);
  return seen.size();
}

}  // namespace score::gang
