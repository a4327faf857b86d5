#pragma once
// ControlMembers has the members of the PM network of the daemons, and decides when the next roster
// is due. The class is pure; callers pass events and times.

#include "base/ids.hpp"
#include "base/time.hpp"
#include "scored/control/roster.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace score::head {

class ControlMembers {
 public:
  // Sets the address of a node; an address that is not a member's means that the node is not
  // reachable. Returns false if nothing has changed.
  bool set(NodeId node, const control::MemberAddress& address, TimePoint now);

  bool remove(NodeId node, TimePoint now) { return set(node, {}, now); }

  [[nodiscard]] bool has(NodeId node) const;
  [[nodiscard]] std::size_t count() const;

  // Returns when the next roster must be made; nullopt if the last one is still valid. Changes are
  // collected for longer if there are more members, because each member gets each roster.
  [[nodiscard]] std::optional<TimePoint> due() const;
  // Makes the current roster; `head` is its rank 0. Without a node it has no members.
  control::Roster make(std::uint32_t generation, std::uint64_t key,
                       const control::MemberAddress& head);

 private:
  std::vector<control::MemberAddress> nodes_;  // indexed by node
  std::optional<TimePoint> changed_;           // first change since the last roster
};

}  // namespace score::head
