#pragma once
// SubmitQueue decides whose submission gets the next process of the submit hook: users take turns,
// so that a user with many submissions delays the others by one each. It is pure.

#include "base/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

namespace score::head {

class SubmitQueue {
 public:
  using Ticket = std::uint64_t;

  void add(UserId user, Ticket ticket);
  // Removes and returns the oldest ticket of the user whose turn it is; nullopt if none waits.
  [[nodiscard]] std::optional<Ticket> next();

  [[nodiscard]] bool empty() const { return waiting_.empty(); }

 private:
  std::map<UserId, std::deque<Ticket>> waiting_;  // no deque is empty
  std::optional<UserId> last_;                    // the user who had the last turn
};

}  // namespace score::head
