#include "scored/head/nodes/control_members.hpp"

#include <algorithm>

namespace score::head {

namespace {

constexpr Duration kGather = 100ms;
// A roster of 4,096 members is 50 KB and goes to as many nodes, so it is sent about once per
// second.
constexpr Duration kGatherPerMember = 250us;

}  // namespace

bool ControlMembers::set(NodeId node, const control::MemberAddress& address, TimePoint now) {
  if (node.value() >= nodes_.size()) nodes_.resize(node.value() + std::size_t{1});
  if (nodes_[node.value()] == address) return false;
  nodes_[node.value()] = address;
  if (!changed_) changed_ = now;
  return true;
}

bool ControlMembers::has(NodeId node) const {
  return node.value() < nodes_.size() && nodes_[node.value()].is_member();
}

std::size_t ControlMembers::count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(nodes_, [](const auto& address) { return address.is_member(); }));
}

std::optional<TimePoint> ControlMembers::due() const {
  if (!changed_) return std::nullopt;
  return *changed_ + kGather + static_cast<Duration::rep>(count()) * kGatherPerMember;
}

control::Roster ControlMembers::make(std::uint32_t generation, std::uint64_t key,
                                     const control::MemberAddress& head) {
  changed_.reset();
  control::Roster roster{generation, key, {}};
  if (count() == 0) return roster;
  roster.members.push_back(head);
  roster.members.insert(roster.members.end(), nodes_.begin(), nodes_.end());
  return roster;
}

}  // namespace score::head
