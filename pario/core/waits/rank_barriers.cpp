#include "pario/core/waits/rank_barriers.hpp"

#include <algorithm>
#include <cerrno>

namespace score::pario {

std::vector<RankBarriers::Answer> RankBarriers::join(const Join& join, std::uint64_t token,
                                                     std::int64_t now_ms) {
  if (join.size == 0 || join.size > kMostRanks || join.rank >= join.size) return {{token, EINVAL}};
  auto found = open_.find(join.key);
  if (found == open_.end()) {
    if (open_.size() >= kMost) return {{token, ENOBUFS}};
    found = open_.emplace(join.key, RankBarrier{.size = join.size, .since_ms = now_ms}).first;
  }
  RankBarrier& rank_barrier = found->second;
  if (rank_barrier.failed != 0) return {{token, rank_barrier.failed}};
  if (rank_barrier.size != join.size || rank_barrier.tokens.contains(join.rank)) {
    return {{token, EINVAL}};
  }
  rank_barrier.tokens.emplace(join.rank, token);
  if (rank_barrier.error == 0) rank_barrier.error = join.error;
  if (rank_barrier.tokens.size() < rank_barrier.size) return {};
  std::vector<Answer> answers;
  for (const auto& [rank, waiting] : rank_barrier.tokens) {
    answers.push_back({waiting, rank_barrier.error});
  }
  open_.erase(found);
  return answers;
}

std::vector<RankBarriers::Answer> RankBarriers::fail(RankBarrier& rank_barrier, int error,
                                                     std::int64_t now_ms) {
  std::vector<Answer> answers;
  for (const auto& [rank, token] : rank_barrier.tokens) answers.push_back({token, error});
  rank_barrier.tokens.clear();
  rank_barrier.failed = error;
  rank_barrier.since_ms = now_ms;
  return answers;
}

std::vector<RankBarriers::Answer> RankBarriers::leave(std::uint64_t token, std::int64_t now_ms) {
  for (auto& [key, rank_barrier] : open_) {
    const auto is_it = [token](const auto& entry) { return entry.second == token; };
    if (std::ranges::any_of(rank_barrier.tokens, is_it))
      return fail(rank_barrier, ECANCELED, now_ms);
  }
  return {};
}

std::vector<RankBarriers::Answer> RankBarriers::tick(std::int64_t now_ms) {
  std::vector<Answer> answers;
  for (auto at = open_.begin(); at != open_.end();) {
    RankBarrier& rank_barrier = at->second;
    const bool is_over = now_ms - rank_barrier.since_ms >= kTimeoutMs;
    if (is_over && rank_barrier.failed != 0) {
      at = open_.erase(at);
      continue;
    }
    if (is_over)
      std::ranges::copy(fail(rank_barrier, ETIMEDOUT, now_ms), std::back_inserter(answers));
    ++at;
  }
  return answers;
}

}  // namespace score::pario
