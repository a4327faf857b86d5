#include "proto/documents/stack_tree.hpp"

#include "base/text/index_set.hpp"

#include <algorithm>
#include <optional>

namespace score::proto {

using base::Errc;
using base::fail;
using base::Result;
using base::Status;

namespace {

constexpr std::size_t kFrameOverhead = 32;  // bytes on the wire, besides the texts

std::string cut(std::string_view text) {
  return std::string(text.substr(0, StackTree::kMaxTextBytes));
}

// Holds a tree from the wire whose fields have been checked.
struct CheckedTree {
  std::vector<std::set<std::uint32_t>> ranks;  // [frame]
  std::vector<std::set<std::uint32_t>> of_problems;
};

// A list costs time by its length, so all lists together are bounded, before they are made.
class RankLists {
 public:
  RankLists(std::uint32_t tasks, std::size_t count)
      : tasks_(tasks), left_(count * StackTree::kMaxPlacesPerRank) {}

  Result<std::set<std::uint32_t>> read(std::string_view text) {
    if (text.empty()) return std::set<std::uint32_t>();
    auto ranks = parse_ranks(text, tasks_, left_);
    if (ranks) left_ -= ranks->size();
    return ranks;
  }

 private:
  std::uint32_t tasks_;
  std::size_t left_;
};

Result<CheckedTree> check(const wire::StackTree& tree, RankLists lists) {
  CheckedTree checked;
  if (tree.frames_size() > static_cast<int>(StackTree::kMaxFrames) ||
      tree.problems_size() > static_cast<int>(StackTree::kMaxProblems)) {
    return fail(Errc::Malformed, "a tree of {} frames", tree.frames_size());
  }
  std::vector<std::size_t> depths;
  for (const auto& frame : tree.frames()) {
    if (frame.parent() > depths.size()) {
      return fail(Errc::Malformed, "a frame before its caller");
    }
    depths.push_back(frame.parent() == 0 ? 1 : depths[frame.parent() - 1] + 1);
    if (depths.back() > StackTree::kMaxDepth) return fail(Errc::Malformed, "a stack is too deep");
    auto ranks = lists.read(frame.ranks());
    if (!ranks) return ranks.error();
    checked.ranks.push_back(*std::move(ranks));
  }
  for (const auto& problem : tree.problems()) {
    auto ranks = lists.read(problem.ranks());
    if (!ranks) return ranks.error();
    checked.of_problems.push_back(*std::move(ranks));
  }
  return checked;
}

}  // namespace

std::string rank_list(const std::set<std::uint32_t>& ranks) {
  std::string text;
  for (auto next = ranks.begin(); next != ranks.end();) {
    const std::uint32_t first = *next;
    std::uint32_t last = first;
    for (++next; next != ranks.end() && *next == last + 1; ++next) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (last > first) text += '-' + std::to_string(last);
  }
  return text;
}

Result<std::set<std::uint32_t>> parse_ranks(std::string_view text, std::uint32_t tasks,
                                            std::size_t most) {
  const auto size = static_cast<std::uint32_t>(std::min<std::size_t>(tasks, most));
  const auto parsed = base::IndexSet::parse(text, size);
  if (!parsed) return parsed.error();
  std::set<std::uint32_t> ranks;
  for (auto rank = parsed->next(0); rank; rank = parsed->next(*rank + 1)) {
    if (*rank >= tasks) {
      return fail(Errc::Malformed, "rank {} is outside 0 ... {}", *rank, tasks - 1);
    }
    ranks.insert(ranks.end(), *rank);
  }
  return ranks;
}

std::size_t StackTree::find_or_add(std::size_t parent, const StackFrame& frame) {
  StackFrame bounded{cut(frame.function), cut(frame.place)};
  const auto [place, is_new] =
      places_.try_emplace({parent, bounded.function, bounded.place}, frames_.size() + 1);
  if (!is_new) return place->second;
  if (frames_.size() == kMaxFrames) {
    places_.erase(place);
    return 0;
  }
  frames_.push_back({parent, std::move(bounded), {}, 0});
  return frames_.size();
}

void StackTree::add(std::span<const StackFrame> stack, std::uint32_t rank) {
  if (stack.empty()) return;
  std::size_t at = 0;
  for (const StackFrame& frame : stack.first(std::min(stack.size(), kMaxDepth))) {
    at = find_or_add(at, frame);
    if (at == 0) {
      ++dropped_;
      return;
    }
  }
  frames_[at - 1].ranks.insert(rank);
  ++frames_[at - 1].threads;
}

void StackTree::add_problem(std::uint32_t rank, std::string_view text) {
  std::string key = cut(text);
  if (problems_.size() == kMaxProblems && !problems_.contains(key)) key = "other problems";
  if (problems_.size() == kMaxProblems && !problems_.contains(key)) return;
  problems_[std::move(key)].insert(rank);
}

Status StackTree::merge(const wire::StackTree& other, std::uint32_t tasks, std::size_t count) {
  const auto checked = check(other, RankLists(tasks, count));
  if (!checked) return checked.error();
  std::vector<std::size_t> own;  // [frame of the other tree] 1 + index here; 0: no room
  for (int i = 0; i < other.frames_size(); ++i) {
    const auto& frame = other.frames(i);
    const std::size_t parent = frame.parent() == 0 ? 0 : own[frame.parent() - 1];
    const bool has_room = frame.parent() == 0 || parent != 0;
    own.push_back(has_room ? find_or_add(parent, {frame.function(), frame.place()}) : 0);
    if (own.back() == 0) {
      dropped_ += frame.threads();
      continue;
    }
    Frame& mine = frames_[own.back() - 1];
    mine.ranks.insert(checked->ranks[static_cast<std::size_t>(i)].begin(),
                      checked->ranks[static_cast<std::size_t>(i)].end());
    mine.threads += frame.threads();
  }
  for (int i = 0; i < other.problems_size(); ++i) {
    for (const std::uint32_t rank : checked->of_problems[static_cast<std::size_t>(i)]) {
      add_problem(rank, other.problems(i).text());
    }
  }
  dropped_ += other.dropped();
  return {};
}

wire::StackTree StackTree::to_wire(std::size_t max_bytes) const {
  wire::StackTree tree;
  std::uint32_t dropped = dropped_;
  std::size_t bytes = 0;
  std::vector<std::uint32_t> sent(frames_.size());  // 1 + index on the wire; 0: left out
  for (std::size_t i = 0; i < frames_.size(); ++i) {
    const Frame& frame = frames_[i];
    std::string ranks = rank_list(frame.ranks);
    const std::size_t size =
        frame.frame.function.size() + frame.frame.place.size() + ranks.size() + kFrameOverhead;
    const bool has_caller = frame.parent == 0 || sent[frame.parent - 1] != 0;
    if (!has_caller || bytes + size > max_bytes) {
      dropped += frame.threads;
      continue;
    }
    bytes += size;
    auto& out = *tree.add_frames();
    out.set_parent(frame.parent == 0 ? 0 : sent[frame.parent - 1]);
    out.set_function(frame.frame.function);
    out.set_place(frame.frame.place);
    out.set_ranks(std::move(ranks));
    out.set_threads(frame.threads);
    sent[i] = static_cast<std::uint32_t>(tree.frames_size());
  }
  for (const auto& [text, ranks] : problems_) {
    auto& problem = *tree.add_problems();
    problem.set_text(text);
    problem.set_ranks(rank_list(ranks));
  }
  tree.set_dropped(dropped);
  return tree;
}

}  // namespace score::proto
