#include "pario/core/gatherings.hpp"

#include <algorithm>
#include <cerrno>

namespace score::pario {

std::vector<Gatherings::Answer> Gatherings::join(const Join& join, std::uint64_t token,
                                                 std::int64_t now_ms) {
  if (join.size == 0 || join.size > kMostRanks || join.rank >= join.size) return {{token, EINVAL}};
  auto found = open_.find(join.key);
  if (found == open_.end()) {
    if (open_.size() >= kMost) return {{token, ENOBUFS}};
    found = open_.emplace(join.key, Gathering{.size = join.size, .since_ms = now_ms}).first;
  }
  Gathering& gathering = found->second;
  if (gathering.failed != 0) return {{token, gathering.failed}};
  if (gathering.size != join.size || gathering.tokens.contains(join.rank)) {
    return {{token, EINVAL}};
  }
  gathering.tokens.emplace(join.rank, token);
  if (gathering.error == 0) gathering.error = join.error;
  if (gathering.tokens.size() < gathering.size) return {};
  std::vector<Answer> answers;
  for (const auto& [rank, waiting] : gathering.tokens) {
    answers.push_back({waiting, gathering.error});
  }
  open_.erase(found);
  return answers;
}

std::vector<Gatherings::Answer> Gatherings::fail(Gathering& gathering, int error,
                                                 std::int64_t now_ms) {
  std::vector<Answer> answers;
  for (const auto& [rank, token] : gathering.tokens) answers.push_back({token, error});
  gathering.tokens.clear();
  gathering.failed = error;
  gathering.since_ms = now_ms;
  return answers;
}

std::vector<Gatherings::Answer> Gatherings::leave(std::uint64_t token, std::int64_t now_ms) {
  for (auto& [key, gathering] : open_) {
    const auto is_it = [token](const auto& entry) { return entry.second == token; };
    if (std::ranges::any_of(gathering.tokens, is_it)) return fail(gathering, ECANCELED, now_ms);
  }
  return {};
}

std::vector<Gatherings::Answer> Gatherings::tick(std::int64_t now_ms) {
  std::vector<Answer> answers;
  for (auto at = open_.begin(); at != open_.end();) {
    Gathering& gathering = at->second;
    const bool is_over = now_ms - gathering.since_ms >= kPatienceMs;
    if (is_over && gathering.failed != 0) {
      at = open_.erase(at);
      continue;
    }
    if (is_over) std::ranges::copy(fail(gathering, ETIMEDOUT, now_ms), std::back_inserter(answers));
    ++at;
  }
  return answers;
}

}  // namespace score::pario
