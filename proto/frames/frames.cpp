#include "proto/frames/frames.hpp"

#include <algorithm>

namespace score::proto {

namespace {

constexpr std::uint32_t bit_of(Role role) {
  return 1U << static_cast<unsigned>(role);
}

}  // namespace

const FrameRule* find_rule(FrameType type) {
  const auto* rule = std::lower_bound(kFrameRules.begin(), kFrameRules.end(), type,
                                      [](const FrameRule& a, FrameType b) { return a.type < b; });
  return rule != kFrameRules.end() && rule->type == type ? rule : nullptr;
}

bool may_send(Role role, FrameType type) {
  const FrameRule* rule = find_rule(type);
  return rule != nullptr && (rule->allowed_roles & bit_of(role)) != 0;
}

bool may_open(Role role, FrameType type) {
  return may_send(role, type) || (role == Role::OtherUser && may_send(Role::Owner, type));
}

std::string_view name_of(FrameType type) {
  const FrameRule* rule = find_rule(type);
  return rule != nullptr ? rule->name : "unknown";
}

std::string_view name_of(Role role) {
  auto index = static_cast<std::size_t>(role);
  return index < kRoleCount ? kRoleNames[index] : "unknown";
}

}  // namespace score::proto
