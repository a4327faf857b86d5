#include "scored/node/channel/job_contexts.hpp"

#include "base/errc.hpp"

#include <fcntl.h>
#include <iterator>
#include <utility>

namespace score::node {

namespace {

// Only memory that its owner cannot truncate is read. A file of a different kind could block a
// reader for any length of time.
bool is_sealed_memory(int fd) {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & kSeals) == kSeals;
}

}  // namespace

std::shared_ptr<const ContextSet> JobContexts::of(AttemptId attempt) const {
  const auto found = complete_.find(attempt);
  return found == complete_.end() ? nullptr : found->second;
}

std::vector<AttemptId> JobContexts::attempts() const {
  std::vector<AttemptId> ids;
  for (const auto& [id, contexts] : complete_) ids.push_back(id);
  return ids;
}

Result<bool> JobContexts::add(AttemptId attempt, std::size_t first, std::size_t tasks,
                              ContextSet contexts) {
  ContextSet& so_far = incomplete_[attempt];
  if (first == 0) so_far.clear();
  if (first != so_far.size() || contexts.empty() || contexts.size() > tasks - so_far.size()) {
    return fail(Errc::Malformed, "unexpected contexts {} to {} of {}", first,
                first + contexts.size(), tasks);
  }
  for (const UniqueFd& context : contexts) {
    if (!is_sealed_memory(context.get()))
      return fail(Errc::Malformed, "a context is not sealed memory");
  }
  std::move(contexts.begin(), contexts.end(), std::back_inserter(so_far));
  if (so_far.size() < tasks) return false;
  complete_[attempt] = std::make_shared<const ContextSet>(std::move(so_far));
  incomplete_.erase(attempt);
  return true;
}

void JobContexts::remove(AttemptId attempt) {
  incomplete_.erase(attempt);
  complete_.erase(attempt);
}

}  // namespace score::node
