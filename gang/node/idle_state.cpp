// This file is tested by states_test.cpp.
#include "gang/node/idle_state.hpp"

namespace score::gang {

const char* to_string(IdleState state) {
  constexpr std::array kNames{"Stopped", "Turn", "Background", "BackgroundStopped", "Held"};
  return kNames.at(static_cast<std::size_t>(state));
}

const char* to_string(IdleEvent event) {
  constexpr std::array kNames{"ToBackground", "ToTurns", "Continue", "Stop", "Due", "Use"};
  return kNames.at(static_cast<std::size_t>(event));
}

const char* to_string(IdleAction action) {
  constexpr std::array kNames{"None", "Probe", "Check", "ReadUsage", "ReadWaited"};
  return kNames.at(static_cast<std::size_t>(action));
}

}  // namespace score::gang
