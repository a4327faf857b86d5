#pragma once
// A setting is a value of the head that operators may change while jobs run, by `scadm set`, the
// dashboard, or scored.toml and a reload. The table settings() is the only list of them: the
// configuration, the commands, the wire, the store, the documents and the manual follow it. To add
// a setting, add a row here, a member to gang::ClusterConfig, and its effect to
// gang::Cluster::set().

#include "base/result.hpp"
#include "base/time.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace score::inline base {

enum class Setting : std::uint8_t {
  Quantum,
  Slots,
  UrgentSlots,
  IdleDetection,
  Fill,
  MaxRequeues,
  Overcommit,
  Young,
};

inline constexpr std::size_t kSettings = 8;

// The value of a setting is a number: of ns for a Time, 0 or 1 for a Switch.
using SettingValue = std::int64_t;

struct SettingRule {
  enum class Kind : std::uint8_t { Time, Number, Switch };

  Setting setting;
  std::string_view name;  // "quantum"; for commands, the wire, the store and documents
  std::string_view key;   // in the table [head] of scored.toml
  Kind kind;
  SettingValue least, most, initial;
  std::string_view purpose;  // a sentence for people
  std::string_view on, off;  // what follows when it is set to a value, or to off; may be empty
};

// Returns all settings, ordered by Setting.
[[nodiscard]] std::span<const SettingRule, kSettings> settings();
[[nodiscard]] const SettingRule& rule_of(Setting setting);
// Returns nullptr if no setting has this name.
[[nodiscard]] const SettingRule* find_setting(std::string_view name);

// Returns the values that a setting may have: "on or off", "a time from 1ms to 10s".
[[nodiscard]] std::string range_of(const SettingRule& rule);
// Parses "50ms", "8", "on". Errors: Malformed, TooLarge; the message names setting and range.
[[nodiscard]] Result<SettingValue> parse_setting(const SettingRule& rule, std::string_view text);
// Errors: TooLarge if the value is out of range.
[[nodiscard]] Status check_setting(const SettingRule& rule, SettingValue value);
// Returns the text that parse_setting() reads.
[[nodiscard]] std::string format_setting(const SettingRule& rule, SettingValue value);

// Holds one value per setting, initially the defaults.
class Settings {
 public:
  Settings();

  [[nodiscard]] SettingValue operator[](Setting setting) const {
    return values_[static_cast<std::size_t>(setting)];
  }

  void set(Setting setting, SettingValue value) {
    values_[static_cast<std::size_t>(setting)] = value;
  }

  friend bool operator==(const Settings&, const Settings&) = default;

 private:
  std::array<SettingValue, kSettings> values_{};
};

}  // namespace score::inline base
