#pragma once
// This table says when an attempt is checked for being idle, and what the check does to it.
// docs/reference/states.md shows the same rows.

#include <array>
#include <cstdint>

namespace score::gang {

// Background means that the attempt is not in the timetable and runs together with the gangs.
enum class IdleState : std::uint8_t {
  Stopped,            // in the timetable and not in its turn; entered at first
  Turn,               // in its turn
  Background,         // runs in the background
  BackgroundStopped,  // is in the background, and has not been continued there
  Held,               // is in the background, needed the processor there, and must not run
};

enum class IdleEvent : std::uint8_t {
  ToBackground,  // the plan: it goes to the background
  ToTurns,       // the plan: it leaves the background
  Continue,      // it has been continued, or keeps running
  Stop,          // it has been stopped, or still is
  Due,           // the time that next_check() returned has come
  Use,           // IdleJudge: a check found use in the background while other attempts run
};

// An action is the next step of the caller, which passes what it has read to the function of
// IdleJudge that is named in parentheses. This function returns the action after it.
enum class IdleAction : std::uint8_t {
  None,
  Probe,       // read the leader's time; it may show that nothing has changed (take_leader)
  Check,       // read the leader's time, as the least that was used (take_leader)
  ReadUsage,   // read the time of all tasks, and what they polled (take_usage)
  ReadWaited,  // read how long tasks waited for a processor (take_waited)
};

struct IdleStep {
  IdleState from;
  IdleEvent event;
  IdleState to;
  IdleAction action;
};

// A pair that is not listed changes nothing: all attempts are reported after each switch.
inline constexpr std::array kIdleSteps = std::to_array<IdleStep>({
    {IdleState::Stopped, IdleEvent::ToBackground, IdleState::BackgroundStopped, IdleAction::None},
    {IdleState::Stopped, IdleEvent::Continue, IdleState::Turn, IdleAction::None},
    {IdleState::Turn, IdleEvent::ToBackground, IdleState::Background, IdleAction::None},
    {IdleState::Turn, IdleEvent::Stop, IdleState::Stopped, IdleAction::Probe},
    {IdleState::Turn, IdleEvent::Due, IdleState::Turn, IdleAction::Probe},
    {IdleState::Background, IdleEvent::ToTurns, IdleState::Turn, IdleAction::Check},
    {IdleState::Background, IdleEvent::Stop, IdleState::BackgroundStopped, IdleAction::Check},
    {IdleState::Background, IdleEvent::Due, IdleState::Background, IdleAction::Check},
    {IdleState::Background, IdleEvent::Use, IdleState::Held, IdleAction::None},
    {IdleState::BackgroundStopped, IdleEvent::ToTurns, IdleState::Stopped, IdleAction::None},
    {IdleState::BackgroundStopped, IdleEvent::Continue, IdleState::Background, IdleAction::None},
    {IdleState::Held, IdleEvent::ToTurns, IdleState::Stopped, IdleAction::None},
    {IdleState::Held, IdleEvent::Continue, IdleState::Background, IdleAction::None},
    {IdleState::Held, IdleEvent::Due, IdleState::BackgroundStopped, IdleAction::None},
});

// Returns the step from this state; null if it is not listed.
constexpr const IdleStep* idle_step(IdleState from, IdleEvent event) {
  for (const IdleStep& step : kIdleSteps) {
    if (step.from == from && step.event == event) return &step;
  }
  return nullptr;
}

const char* to_string(IdleState state);
const char* to_string(IdleEvent event);
const char* to_string(IdleAction action);

}  // namespace score::gang
