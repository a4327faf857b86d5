// Holds the PM contexts of this node's attempts, as their shepherds passed them in. The memory
// behind the descriptors belongs to the user and may contain anything: read it by
// pm::read_summary(), write it by pwrite. Only ChannelUser maps one page, if it is sealed.
#pragma once

#include "base/ids.hpp"
#include "base/os/fd.hpp"
#include "base/result.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

namespace score::node {

// Holds the contexts of one attempt on this node, in the order of ranks.
using ContextSet = std::vector<UniqueFd>;

class JobContexts {
 public:
  // Returns all tasks' contexts, or null until the job has opened its network. The set never
  // changes and is shared with all holders.
  [[nodiscard]] std::shared_ptr<const ContextSet> of(AttemptId attempt) const;
  // Returns the attempts that have contexts, ascending.
  [[nodiscard]] std::vector<AttemptId> attempts() const;

  // Adds contexts from number `first` on, of `tasks` in all. They arrive in order, and again from
  // the first one after a restart of the daemon. Returns true if the set is complete. Errors:
  // Malformed (not in order, too many, or not sealed memory).
  Result<bool> add(AttemptId attempt, std::size_t first, std::size_t tasks, ContextSet contexts);
  // Does nothing for an unknown attempt.
  void remove(AttemptId attempt);

 private:
  std::map<AttemptId, ContextSet> incomplete_;
  std::map<AttemptId, std::shared_ptr<const ContextSet>> complete_;
};

}  // namespace score::node
