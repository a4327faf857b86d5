#pragma once
// What a POST asks for, checked as far as it can be without the cluster. Pure.

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace score::monitor {

enum class ActionKind : std::uint8_t {
  SetQuantum,
  SetSlots,
  Drain,
  Resume,
  Suspend,
  Continue,
  Cancel,
  Logout,
};

struct Action {
  ActionKind kind = ActionKind::Logout;
  Duration quantum{0};
  std::uint32_t slots = 0;
  std::string nodes, reason;      // a host list
  JobId job;                      // 0: none
  std::optional<Duration> grace;  // none: the cluster's
};

// "quantum", "drain" ...: the last part of the path.
[[nodiscard]] std::string_view name_of(ActionKind kind);
// What it is about, e.g. "job 7", for logs; "" if it is about the cluster.
[[nodiscard]] std::string object_of(const Action& action);

// `name`: the last part of the path. Errors: NotFound (no such action), Malformed.
[[nodiscard]] Result<Action> parse_action(std::string_view name, std::string_view body);

}  // namespace score::monitor
