#include "scored/head/stacks/wait_picture.hpp"

#include "base/limits.hpp"
#include "proto/documents/stack_tree.hpp"
#include "scored/head/stacks/stacks_collector.hpp"

#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <vector>

namespace score::head {
namespace {

// The functions of MPI have two names.
std::string_view plain(std::string_view function) {
  if (function.starts_with("PMPI_")) function.remove_prefix(1);
  return function;
}

// A function of PM's C interface may be left out of the stack, since it calls the class as its last
// step.
bool is_call(std::string_view function, std::string_view call) {
  const bool is_within_pm = call.starts_with("pm_") && function.starts_with("score::pm::");
  return is_within_pm || plain(function) == plain(call);
}

std::set<std::uint32_t> ranks_of(std::string_view list) {
  auto ranks = proto::parse_ranks(list, limits::kMaxTasksPerJob);
  return ranks ? *std::move(ranks) : std::set<std::uint32_t>();
}

// Returns 1 + index of the outermost frame of a call on the way to the frame `end`, counted
// likewise; 0: none.
std::size_t find_outermost(const wire::StackTree& tree, std::size_t end, std::string_view call) {
  std::size_t found = 0;
  for (std::size_t at = end; at != 0;) {
    const auto& frame = tree.frames(static_cast<int>(at - 1));
    if (is_call(frame.function(), call)) found = at;
    at = frame.parent() < at ? frame.parent() : 0;
  }
  return found;
}

}  // namespace

WaitPicture::WaitPicture(const wire::Stacks& stacks) {
  for (const auto& state : stacks.states()) {
    is_still_ = is_still_ && state.waits() && state.received() == 0;
    if (state.polls()) polls_.insert(state.rank());
    ranks_[state.rank()] = {
        state.call(), state.from(), state.message_tag(), state.sending_to(), {}};
  }
  add_stacks(stacks.tree());
  std::set<std::uint32_t> unread;
  for (const auto& problem : stacks.tree().problems()) {
    unread.merge(ranks_of(problem.ranks()));
    is_still_ = is_still_ && !problem.text().ends_with(StacksCollector::kSilent);
  }
  for (const auto& [number, rank] : ranks_) {
    const bool is_known =
        polls_.contains(number) || !(rank.call.empty() || unread.contains(number));
    is_still_ = is_still_ && (!is_known || !rank.ways.empty());
  }
}

// Frames of a tree come after their callers. A way down to a frame is known by its hash.
void WaitPicture::add_stacks(const wire::StackTree& tree) {
  const auto count = static_cast<std::size_t>(tree.frames_size());
  std::vector<std::size_t> ways(count + 1);  // [1 + index of the frame]
  for (std::size_t i = 1; i <= count; ++i) {
    const auto& frame = tree.frames(static_cast<int>(i - 1));
    const std::size_t caller = frame.parent() < i ? ways[frame.parent()] : 0;
    ways[i] = std::hash<std::string>()(
        fmt::format("{}\t{}\t{}", caller, frame.function(), frame.place()));
    for (const std::uint32_t number : ranks_of(frame.ranks())) {
      const auto rank = ranks_.find(number);
      if (rank == ranks_.end()) continue;
      const std::size_t found = find_outermost(tree, i, rank->second.call);
      if (found != 0) rank->second.ways.insert(ways[found]);
    }
  }
}

}  // namespace score::head
