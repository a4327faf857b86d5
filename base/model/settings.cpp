#include "base/model/settings.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace score::inline base {
namespace {

using Kind = SettingRule::Kind;

constexpr SettingValue kMostRequeues = 100;
constexpr Duration kYoung = std::chrono::seconds{30};
constexpr Duration kMostYoung = std::chrono::hours{1};
static_assert(kMostRequeues < kAttemptsPerJob, "each takes a number");

constexpr std::array<SettingRule, kSettings> kRules = {{
    {Setting::Quantum, "quantum", "quantum", Kind::Time, limits::kMinQuantum.count(),
     limits::kMaxQuantum.count(), limits::kDefaultQuantum.count(),
     "Length of a time slice. No job is stopped when it changes.",
     "effective at the next slice boundary", ""},
    {Setting::Slots, "slots", "slots", Kind::Number, 1, limits::kMaxSlots, limits::kMaxSlots,
     "Rows of the gang matrix: at most this many jobs share a core. Rows are opened as jobs need "
     "them and cost nothing else.",
     "", ""},
    {Setting::UrgentSlots, "urgent_slots", "urgent_slots", Kind::Number, 0, limits::kMaxUrgentSlots,
     limits::kDefaultUrgentSlots,
     "Rows beyond slots that jobs of queue urgent may open when all rows are in use. No other job "
     "uses them, and a row goes when its last job ends.",
     "", ""},
    {Setting::IdleDetection, "idle", "idle_detection", Kind::Switch, 0, 1, 1,
     "Give the slices of a job that is idle on all its nodes to busy jobs that need its cores, "
     "until something wakes it.",
     "idle jobs give up their slices", "idle jobs keep their slices"},
    {Setting::Fill, "fill", "fill", Kind::Switch, 0, 1, 0,
     "Let jobs that are not in turn use, at idle priority, the processor time that the job in turn "
     "leaves.",
     "jobs may use the processor time that the gang in turn leaves",
     "jobs run only in their own slices"},
    {Setting::MaxRequeues, "max_requeues", "max_requeues", Kind::Number, 0, kMostRequeues, 3,
     "How many times a job that lost a node is restarted, and a launch that fails for a reason of "
     "the "
     "machine is repeated.",
     "", ""},
    {Setting::Overcommit, "overcommit", "overcommit", Kind::Switch, 0, 1, 1,
     "Run jobs that request more tasks than their nodes have cores; up to 128 tasks then share a "
     "core. Jobs that run already are not affected.",
     "tasks of a job may share cores", "jobs with more tasks than cores are refused"},
    {Setting::Young, "young", "young", Kind::Time, 0, kMostYoung.count(), kYoung.count(),
     "Scheduled time for which a new job is young. Young jobs share at least half of the time of "
     "their cores, and at least a quarter is left to the others.",
     "", ""},
}};

static_assert(
    [] {
      for (std::size_t i = 0; i < kSettings; ++i) {
        const SettingRule& rule = kRules[i];
        if (rule.setting != Setting(i)) return false;
        if (rule.initial < rule.least || rule.initial > rule.most) return false;
      }
      return true;
    }(),
    "rows are in the order of Setting, with initial values in range");

}  // namespace

std::span<const SettingRule, kSettings> settings() {
  return kRules;
}

const SettingRule& rule_of(Setting setting) {
  return kRules[static_cast<std::size_t>(setting)];
}

const SettingRule* find_setting(std::string_view name) {
  const auto found = std::ranges::find(kRules, name, &SettingRule::name);
  return found == kRules.end() ? nullptr : &*found;
}

std::string range_of(const SettingRule& rule) {
  if (rule.kind == Kind::Switch) return "on or off";
  return fmt::format("a {} from {} to {}", rule.kind == Kind::Time ? "time" : "number",
                     format_setting(rule, rule.least), format_setting(rule, rule.most));
}

Result<SettingValue> parse_setting(const SettingRule& rule, std::string_view text) {
  const auto refused = [&](Errc why) {
    return fail(why, "{} '{}': use {}", rule.name, escape_terminal(text, 80), range_of(rule));
  };
  if (rule.kind == Kind::Switch) {
    if (text != "on" && text != "off") return refused(Errc::Malformed);
    return text == "on" ? 1 : 0;
  }
  Result<SettingValue> value = parse_number<SettingValue>(text);
  if (rule.kind == Kind::Time) {
    const auto time = parse_duration(text);
    value = time ? Result<SettingValue>(time->count()) : time.error();
  }
  if (!value) return refused(Errc::Malformed);
  if (!check_setting(rule, *value)) return refused(Errc::TooLarge);
  return value;
}

Status check_setting(const SettingRule& rule, SettingValue value) {
  if (value >= rule.least && value <= rule.most) return {};
  return fail(Errc::TooLarge, "{} {}: use {}", rule.name, format_setting(rule, value),
              range_of(rule));
}

std::string format_setting(const SettingRule& rule, SettingValue value) {
  if (rule.kind == Kind::Time) return format_duration(Duration(value));
  if (rule.kind == Kind::Number) return fmt::format("{}", value);
  return value != 0 ? "on" : "off";
}

Settings::Settings() {
  for (const SettingRule& rule : kRules) set(rule.setting, rule.initial);
}

}  // namespace score::inline base
