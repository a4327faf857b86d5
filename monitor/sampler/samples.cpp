#include "monitor/sampler/samples.hpp"

namespace score::monitor {

const char* name_of(TaskState state) {
  constexpr std::array<const char*, kTaskStates> kNames = {"running", "pm",    "blocked", "frozen",
                                                           "stopped", "ended", "fill"};
  const auto index = static_cast<std::size_t>(state);
  return index < kNames.size() ? kNames[index] : "blocked";
}

const char* name_of(SwitchPhase phase) {
  constexpr std::array<const char*, kSwitchPhases> kNames = {"wake",    "stop", "guard", "save",
                                                             "restore", "go",   "total"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::optional<Duration> length_of(const SwitchSample& sample, SwitchPhase phase) {
  const bool has_network = sample.restored > sample.stopped;
  const auto of_network = [&](Duration length) {
    return has_network ? std::optional(length) : std::nullopt;
  };
  switch (phase) {
    case SwitchPhase::Wake:
      return sample.woke;
    case SwitchPhase::Stop:
      return sample.stopped - sample.woke;
    case SwitchPhase::Guard:
      return of_network(sample.guarded - sample.stopped);
    case SwitchPhase::Save:
      return of_network(sample.saved - sample.guarded);
    case SwitchPhase::Restore:
      return of_network(sample.restored - sample.saved);
    case SwitchPhase::Go:
      return sample.done - std::max(sample.stopped, sample.restored);
    case SwitchPhase::Total:
      break;
  }
  return sample.done;
}

}  // namespace score::monitor
