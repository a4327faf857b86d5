#include "proto/convert/words.hpp"

#include <fmt/format.h>

#include <array>

namespace score::proto {

namespace {

template <std::size_t Count>
std::string_view pick(const std::array<std::string_view, Count>& words, int value) {
  const auto index = static_cast<std::size_t>(value);
  return value >= 0 && index < Count ? words[index] : words[0];
}

constexpr std::array<std::string_view, 3> kMethods = {"", "cgroup.freeze", "signals"};
constexpr std::array<std::string_view, 4> kPriorities = {"", "real-time", "nice", "tasks lowered"};
constexpr std::array<std::string_view, 4> kNodeStates = {"unknown", "up", "suspect", "down"};
constexpr std::array<std::string_view, 3> kActivities = {"busy", "idle", "deadlocked"};
constexpr std::array<std::string_view, 5> kRoles = {"file", "configuration", "key",
                                                    "command socket", "launcher socket"};
static_assert(kMethods.size() == wire::Switching::Method_ARRAYSIZE);
static_assert(kPriorities.size() == wire::Switching::Priority_ARRAYSIZE);
static_assert(kNodeStates.size() == wire::NodeStatus::State_ARRAYSIZE);
static_assert(kActivities.size() == wire::JobStatus::Activity_ARRAYSIZE);
static_assert(kRoles.size() == wire::FileFact::Role_ARRAYSIZE);

}  // namespace

std::string_view word_of(wire::Switching::Method method) {
  return pick(kMethods, method);
}

std::string_view word_of(wire::Switching::Priority priority) {
  return pick(kPriorities, priority);
}

std::string_view word_of(wire::NodeStatus::State state) {
  return pick(kNodeStates, state);
}

std::string_view word_of(wire::JobStatus::Activity activity) {
  return pick(kActivities, activity);
}

std::string_view word_of(wire::FileFact::Role role) {
  return pick(kRoles, role);
}

std::string control_words(const wire::NodeStatus& node) {
  if (node.control_path() == wire::NodeStatus::PM) return "pm";
  return node.control_problem().empty() ? "tls" : "tls: " + node.control_problem();
}

std::string state_words(const wire::HeadState& head) {
  const std::string apart = head.is_connected() ? "" : "not connected, ";
  switch (head.state()) {
    case wire::HeadState::LEADS:
      return head.reason().empty() ? "in charge" : "in charge, " + head.reason();
    case wire::HeadState::STANDS_BY:
      return head.reason();
    case wire::HeadState::CURRENT:
      return "current";
    case wire::HeadState::BEHIND:
      return fmt::format("{}{} transactions behind", apart, head.missing());
    case wire::HeadState::NO_COPY:
      return apart + "has no copy of the database yet";
    case wire::HeadState::UNASSESSED:
      return head.is_connected() ? "connected" : "not connected";
    default:
      return head.in_charge() ? "in charge" : "unknown";
  }
}

}  // namespace score::proto
