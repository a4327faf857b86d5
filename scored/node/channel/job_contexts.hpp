// The PM contexts of this node's attempts, as their shepherds passed them in. The memory behind the
// descriptors belongs to the user and may contain anything: read it by pm::read_summary(), write it
// by pwrite. Only ChannelUser maps one page, if it is sealed.
#pragma once

#include "base/ids.hpp"
#include "base/os/fd.hpp"
#include "base/result.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

namespace score::node {

// Contexts of one attempt on this node, in the order of ranks.
using ContextSet = std::vector<UniqueFd>;

class JobContexts {
 public:
  // All tasks' contexts; null until the job has opened its network. The set never changes and is
  // shared with all holders.
  [[nodiscard]] std::shared_ptr<const ContextSet> of(AttemptId attempt) const;
  // Attempts that have contexts, ascending.
  [[nodiscard]] std::vector<AttemptId> attempts() const;

  // Takes contexts `first` and following of `tasks`; they come in order, and from the first one
  // again after the daemon has restarted. True: complete. Errors: Malformed (not in order, too
  // many, or not sealed memory).
  Result<bool> add(AttemptId attempt, std::size_t first, std::size_t tasks, ContextSet contexts);
  // Ignored for an unknown attempt.
  void remove(AttemptId attempt);

 private:
  std::map<AttemptId, ContextSet> incomplete_;
  std::map<AttemptId, std::shared_ptr<const ContextSet>> complete_;
};

}  // namespace score::node
