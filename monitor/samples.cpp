#include "monitor/samples.hpp"

namespace score::monitor {

const char* name_of(TaskState state) {
  constexpr std::array<const char*, kTaskStates> kNames = {"running", "pm",      "blocked",
                                                           "frozen",  "stopped", "ended"};
  const auto index = static_cast<std::size_t>(state);
  return index < kNames.size() ? kNames[index] : "blocked";
}

const char* name_of(SwitchPhase phase) {
  constexpr std::array<const char*, kSwitchPhases> kNames = {"wake", "stop", "go", "total"};
  return kNames[static_cast<std::size_t>(phase)];
}

Duration length_of(const SwitchSample& sample, SwitchPhase phase) {
  switch (phase) {
    case SwitchPhase::Wake:
      return sample.woke;
    case SwitchPhase::Stop:
      return sample.stopped - sample.woke;
    case SwitchPhase::Go:
      return sample.done - sample.stopped;
    case SwitchPhase::Total:
      break;
  }
  return sample.done;
}

}  // namespace score::monitor
