// This file is tested by the tests of gang/head that change settings.
#include "gang/state/config.hpp"

#include <concepts>

namespace score::gang {
namespace {

// Calls `act` with the member that holds the setting.
template <class Config, class Act>
auto with_member(Config& config, base::Setting setting, const Act& act) {
  using base::Setting;
  switch (setting) {
    case Setting::Quantum:
      return act(config.quantum);
    case Setting::Slots:
      return act(config.max_slots);
    case Setting::UrgentSlots:
      return act(config.urgent_slots);
    case Setting::IdleDetection:
      return act(config.idle_detection);
    case Setting::Fill:
      return act(config.fill);
    case Setting::MaxRequeues:
      return act(config.max_requeues);
    case Setting::Young:
      return act(config.young_time);
    case Setting::Overcommit:
      break;
  }
  return act(config.overcommit);
}

base::SettingValue number_of(base::Duration value) {
  return value.count();
}

base::SettingValue number_of(std::integral auto value) {
  return value;
}

}  // namespace

base::SettingValue setting_of(const ClusterConfig& config, base::Setting setting) {
  return with_member(config, setting, [](const auto& member) { return number_of(member); });
}

void set_setting(ClusterConfig& config, base::Setting setting, base::SettingValue value) {
  with_member(config, setting, [value]<class Member>(Member& member) {
    member = static_cast<Member>(value);
    return 0;
  });
}

}  // namespace score::gang
