// The PM contexts of this node's attempts, as their shepherds handed them in. What is behind the
// descriptors belongs to the user and may be anything: read it by pm::read_summary(), write it by
// pwrite, map it never.
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
  // All tasks' contexts; null as long as the job has opened no network. The set does not change and
  // lives as long as somebody holds it.
  [[nodiscard]] std::shared_ptr<const ContextSet> of(AttemptId attempt) const;
  // Attempts that have contexts, ascending.
  [[nodiscard]] std::vector<AttemptId> attempts() const;

  // Takes contexts `first` and following of `tasks`; they come in order, and again from the first
  // one after the shepherd was found again. True: now there are all. Errors: Malformed (not in
  // order, too many, or no sealed memory).
  Result<bool> add(AttemptId attempt, std::size_t first, std::size_t tasks, ContextSet contexts);
  // Unknown: nothing happens.
  void remove(AttemptId attempt);

 private:
  std::map<AttemptId, ContextSet> incomplete_;
  std::map<AttemptId, std::shared_ptr<const ContextSet>> complete_;
};

}  // namespace score::node
