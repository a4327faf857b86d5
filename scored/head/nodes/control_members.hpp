#pragma once
// Which nodes are in the PM network of the daemons, and when the next roster is due. Pure: told
// what happens, and when.

#include "base/ids.hpp"
#include "base/time.hpp"
#include "scored/control/roster.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace score::head {

class ControlMembers {
 public:
  // The node is reached there from now on; an address that is no member's: not at all. False:
  // nothing has changed.
  bool set(NodeId node, const control::MemberAddress& address, TimePoint now);

  bool remove(NodeId node, TimePoint now) { return set(node, {}, now); }

  [[nodiscard]] bool has(NodeId node) const;
  [[nodiscard]] std::size_t count() const;

  // When the next roster must be made; nullopt: the last one still holds. Changes are gathered,
  // the longer the more members there are: each of them gets each roster.
  [[nodiscard]] std::optional<TimePoint> due() const;
  // The roster of now; `head` is its rank 0. None are members without a node.
  control::Roster make(std::uint32_t generation, std::uint64_t key,
                       const control::MemberAddress& head);

 private:
  std::vector<control::MemberAddress> nodes_;  // [node]
  std::optional<TimePoint> changed_;           // first change since the last roster
};

}  // namespace score::head
