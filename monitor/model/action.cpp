#include "monitor/model/action.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "monitor/model/json_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace score::monitor {

namespace {

constexpr double kMostGraceSeconds = 3'600;

struct Rule {
  std::string_view name;
  ActionKind kind;
  std::vector<std::string_view> needs, may;
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> kRules = {
      {"set", ActionKind::Set, {"name", "value"}, {}},
      {"drain", ActionKind::Drain, {"nodes"}, {"reason"}},
      {"resume", ActionKind::Resume, {"nodes"}, {}},
      {"suspend", ActionKind::Suspend, {"job"}, {}},
      {"continue", ActionKind::Continue, {"job"}, {}},
      {"cancel", ActionKind::Cancel, {"job"}, {"grace_s"}},
      {"logout", ActionKind::Logout, {}, {}},
  };
  return kRules;
}

Result<std::uint64_t> whole(const JsonValue& value, std::string_view name, double most) {
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr || !(*number >= 1 && *number <= most) || std::floor(*number) != *number) {
    return fail(Errc::Malformed, "{}: expected a whole number from 1 to {}", name, most);
  }
  return static_cast<std::uint64_t>(*number);
}

Result<std::string> text(const JsonValue& value, std::string_view name, std::size_t most) {
  const auto* found = std::get_if<std::string>(&value);
  if (found == nullptr || found->size() > most) {
    return fail(Errc::Malformed, "{}: a text of at most {} bytes is needed", name, most);
  }
  return *found;
}

Status take(Action& action, std::string_view name, const JsonValue& value) {
  if (name == "name" || name == "value") {
    auto given = text(value, name, 64);
    if (!given) return given.error();
    (name == "name" ? action.name : action.value) = *std::move(given);
  } else if (name == "job") {
    const auto job = whole(value, name, kMaxExactNumber);
    if (!job) return job.error();
    action.job = JobId(*job);
  } else if (name == "grace_s") {
    const auto* grace = std::get_if<double>(&value);
    if (grace == nullptr || !(*grace >= 0 && *grace <= kMostGraceSeconds)) {
      return fail(Errc::Malformed, "grace_s: 0 to {}", kMostGraceSeconds);
    }
    action.grace = Duration(static_cast<Duration::rep>(*grace * 1e9));
  } else {
    const bool is_reason = name == "reason";
    auto given = text(value, name, is_reason ? limits::kMaxErrorTextBytes : 64 * limits::kKiB);
    if (!given) return given.error();
    (is_reason ? action.reason : action.nodes) = *std::move(given);
  }
  return {};
}

}  // namespace

std::string_view name_of(ActionKind kind) {
  const auto rule = std::find_if(rules().begin(), rules().end(),
                                 [kind](const Rule& known) { return known.kind == kind; });
  return rule != rules().end() ? rule->name : "";
}

std::string object_of(const Action& action) {
  if (action.kind == ActionKind::Set) return escape_terminal(action.name, 80);
  if (action.job != JobId()) return fmt::format("job {}", action.job);
  return escape_terminal(action.nodes, 80);
}

Result<Action> parse_action(std::string_view name, std::string_view body) {
  const auto rule = std::find_if(rules().begin(), rules().end(),
                                 [name](const Rule& known) { return known.name == name; });
  if (rule == rules().end()) return fail(Errc::NotFound, "no such action");
  const auto object = parse_object(body);
  if (!object) return object.error();
  Action action;
  action.kind = rule->kind;
  for (const auto needed : rule->needs) {
    if (!object->contains(needed)) return fail(Errc::Malformed, "{} is missing", needed);
  }
  const auto knows = [](const auto& names, std::string_view given) {
    return std::find(names.begin(), names.end(), given) != names.end();
  };
  for (const auto& [given, value] : *object) {
    if (!knows(rule->needs, given) && !knows(rule->may, given)) {
      return fail(Errc::Malformed, "unknown name '{}'", escape_terminal(given, 40));
    }
    if (auto taken = take(action, given, value); !taken) return taken.error();
  }
  return action;
}

}  // namespace score::monitor
