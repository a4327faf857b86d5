#pragma once
// An Action is the request of a POST, checked as far as possible without the cluster. It is pure.

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace score::monitor {

enum class ActionKind : std::uint8_t {
  Set,
  Drain,
  Resume,
  Suspend,
  Continue,
  Cancel,
  Logout,
};

struct Action {
  ActionKind kind = ActionKind::Logout;
  std::string name, value;        // of a setting, see base/model/settings.hpp
  std::string nodes, reason;      // a host list
  JobId job;                      // 0: none
  std::optional<Duration> grace;  // empty: the cluster's default
};

// Returns the last part of the path, such as "set" or "drain".
[[nodiscard]] std::string_view name_of(ActionKind kind);
// Returns the object of the action for logs, such as "job 7", or "" for the cluster.
[[nodiscard]] std::string object_of(const Action& action);

// Parses an action; `name` is the last part of the path. Errors: NotFound (no such action),
// Malformed.
[[nodiscard]] Result<Action> parse_action(std::string_view name, std::string_view body);

}  // namespace score::monitor
