#pragma once
// Settings are keys of the store: what operators set at run time, and what survives a restart of
// the head.

#include "base/model/settings.hpp"
#include "base/text.hpp"
#include "base/time.hpp"
#include "scored/head/store/setting_keys.hpp"
#include "scored/head/store/store.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace score::head {

// A requeue by request ends this attempt. With it, so many restarts of the job were requested.
struct StoredRequeue {
  AttemptId attempt;
  std::uint32_t count = 0;
  std::string by;

  friend bool operator==(const StoredRequeue&, const StoredRequeue&) = default;
};

struct StoredSettings {
  std::map<Setting, SettingValue> values;
  std::map<std::string, std::string> drained;  // node -> reason
  std::vector<JobId> cancelled;                // had not ended yet when the head stopped
  std::map<JobId, std::string> kept;           // job -> the operator who held or suspended it
  std::map<JobId, StoredRequeue> requeued;
  std::map<JobId, std::string> saved;           // job -> directory of its last complete set
  std::map<std::string, std::string> reserved;  // name -> reservation, see pack_booking()
};

inline constexpr std::string_view kDrainPrefix = "drain:";
inline constexpr std::string_view kReservePrefix = "reserve:";

inline SaveSetting value_setting(Setting setting, SettingValue value) {
  const SettingRule& rule = rule_of(setting);
  return {std::string(rule.name), format_setting(rule, value)};
}

// Without a reason the node is not drained any more.
inline SaveSetting drain_setting(const std::string& node, std::optional<std::string> reason) {
  return {std::string(kDrainPrefix) + node, std::move(reason)};
}

// No value means that the reservation has ended or was removed.
inline SaveSetting reserve_setting(const std::string& name, std::optional<std::string> packed) {
  return {std::string(kReservePrefix) + name, std::move(packed)};
}

// `by` is the user; none means that the job has ended.
inline SaveSetting cancel_setting(JobId job, std::optional<std::string> by) {
  return {fmt::format("{}{}", kCancelPrefix, job), std::move(by)};
}

// `by` is the operator who held or suspended the job; empty means that it may continue.
inline SaveSetting keep_setting(JobId job, const std::string& by) {
  return {fmt::format("{}{}", kKeepPrefix, job), by.empty() ? std::nullopt : std::optional(by)};
}

// No request means that the job has ended.
inline SaveSetting requeue_setting(JobId job, const std::optional<StoredRequeue>& request) {
  std::string key = fmt::format("{}{}", kRequeuePrefix, job);
  if (!request) return {std::move(key), std::nullopt};
  return {std::move(key), fmt::format("{} {} {}", request->attempt, request->count, request->by)};
}

// `set` is the directory of the job's last complete set of images.
inline SaveSetting checkpoint_setting(JobId job, const std::string& set) {
  return {checkpoint_key(job), set};
}

// Parses the value of requeue_setting(); none if it cannot be read.
inline std::optional<StoredRequeue> read_requeue(std::string_view text) {
  const auto first = text.find(' ');
  const auto second = first == text.npos ? first : text.find(' ', first + 1);
  if (second == text.npos) return std::nullopt;
  const auto attempt = parse_number<std::uint64_t>(text.substr(0, first));
  const auto count = parse_number<std::uint32_t>(text.substr(first + 1, second - first - 1));
  if (!attempt || !count) return std::nullopt;
  return StoredRequeue{AttemptId(*attempt), *count, std::string(text.substr(second + 1))};
}

// Returns the job in a key; none if the key has a different prefix.
inline std::optional<JobId> job_in(std::string_view key, std::string_view prefix) {
  if (!key.starts_with(prefix)) return std::nullopt;
  const auto job = parse_number<std::uint64_t>(key.substr(prefix.size()));
  return job ? std::optional(JobId(*job)) : std::nullopt;
}

// Values that cannot be read are left out, so the configuration's values apply.
inline StoredSettings read_settings(const std::map<std::string, std::string>& stored) {
  StoredSettings settings;
  for (const auto& [key, value] : stored) {
    if (const SettingRule* rule = find_setting(key)) {
      if (const auto read = parse_setting(*rule, value)) settings.values[rule->setting] = *read;
    } else if (const auto cancelled = job_in(key, kCancelPrefix)) {
      settings.cancelled.push_back(*cancelled);
    } else if (const auto kept = job_in(key, kKeepPrefix)) {
      settings.kept[*kept] = value;
    } else if (const auto requeued = job_in(key, kRequeuePrefix)) {
      if (const auto read = read_requeue(value)) settings.requeued[*requeued] = *read;
    } else if (const auto saved = job_in(key, kCheckpointPrefix)) {
      settings.saved[*saved] = value;
    } else if (key.starts_with(kReservePrefix)) {
      settings.reserved[key.substr(kReservePrefix.size())] = value;
    } else if (key.starts_with(kDrainPrefix)) {
      settings.drained[key.substr(kDrainPrefix.size())] = value;
    }
  }
  return settings;
}

}  // namespace score::head
