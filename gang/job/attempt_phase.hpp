#pragma once
// This table is the life cycle of one attempt on one node. docs/reference/states.md shows the same
// rows.

#include "base/model/model.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace score::gang {

// A phase is base::AttemptPhase, which is sent in reports, or Absent.
enum class Phase : std::uint8_t {
  Absent,     // unknown, refused, or forgotten; entered by Refuse and Forget
  Preparing,  // the shepherd was launched and checks user, directory, executable, limits
  Prepared,   // ready to start at once; no program of the user runs yet
  Running,    // StartTasks came; tasks run, or the plan has frozen them
  Exited,     // nothing runs; kept to repeat the report until the head has recorded it
};

enum class AttemptEvent : std::uint8_t {
  Prepare,  // head: PrepareTasks
  Start,    // head: StartTasks
  Signal,   // head: SignalTasks
  Kill,     // head: KillTasks; or the daemon ends it for its own reasons
  Forget,   // head: ForgetTasks
  Ready,    // shepherd: all checks passed
  Refuse,   // shepherd: a check failed; or it died while checking, unless it was killed
  Started,  // shepherd: the tasks run
  TaskEnd,  // shepherd: one task ended
  Abort,    // shepherd: a rank requested the end of the job
  Done,     // shepherd: every task ended and the cgroup is empty
  Gone,     // the shepherd died
};

struct AttemptStep {
  Phase from;
  AttemptEvent event;
  Phase to;
};

// A pair that is not listed changes nothing and is counted (NodeAgent::unexpected_count).
inline constexpr std::array kAttemptSteps = std::to_array<AttemptStep>({
    {Phase::Absent, AttemptEvent::Prepare, Phase::Preparing},
    {Phase::Absent, AttemptEvent::Start, Phase::Absent},
    {Phase::Absent, AttemptEvent::Signal, Phase::Absent},
    {Phase::Absent, AttemptEvent::Kill, Phase::Absent},
    {Phase::Absent, AttemptEvent::Forget, Phase::Absent},
    {Phase::Preparing, AttemptEvent::Prepare, Phase::Preparing},
    {Phase::Preparing, AttemptEvent::Signal, Phase::Preparing},
    {Phase::Preparing, AttemptEvent::Kill, Phase::Preparing},
    {Phase::Preparing, AttemptEvent::Ready, Phase::Prepared},
    {Phase::Preparing, AttemptEvent::Refuse, Phase::Absent},
    {Phase::Preparing, AttemptEvent::Done, Phase::Exited},
    {Phase::Preparing, AttemptEvent::Gone, Phase::Exited},
    {Phase::Prepared, AttemptEvent::Prepare, Phase::Prepared},
    {Phase::Prepared, AttemptEvent::Start, Phase::Running},
    {Phase::Prepared, AttemptEvent::Signal, Phase::Prepared},
    {Phase::Prepared, AttemptEvent::Kill, Phase::Prepared},
    {Phase::Prepared, AttemptEvent::Done, Phase::Exited},
    {Phase::Prepared, AttemptEvent::Gone, Phase::Exited},
    {Phase::Running, AttemptEvent::Prepare, Phase::Running},
    {Phase::Running, AttemptEvent::Start, Phase::Running},
    {Phase::Running, AttemptEvent::Signal, Phase::Running},
    {Phase::Running, AttemptEvent::Kill, Phase::Running},
    {Phase::Running, AttemptEvent::Started, Phase::Running},
    {Phase::Running, AttemptEvent::TaskEnd, Phase::Running},
    {Phase::Running, AttemptEvent::Abort, Phase::Running},
    {Phase::Running, AttemptEvent::Done, Phase::Exited},
    {Phase::Running, AttemptEvent::Gone, Phase::Exited},
    {Phase::Exited, AttemptEvent::Prepare, Phase::Exited},
    {Phase::Exited, AttemptEvent::Start, Phase::Exited},
    {Phase::Exited, AttemptEvent::Signal, Phase::Exited},
    {Phase::Exited, AttemptEvent::Kill, Phase::Exited},
    {Phase::Exited, AttemptEvent::Done, Phase::Exited},
    {Phase::Exited, AttemptEvent::Gone, Phase::Exited},
    {Phase::Exited, AttemptEvent::Forget, Phase::Absent},
});

constexpr std::optional<Phase> next_phase(Phase from, AttemptEvent event) {
  for (const AttemptStep& step : kAttemptSteps) {
    if (step.from == from && step.event == event) return step.to;
  }
  return std::nullopt;
}

const char* to_string(Phase phase);
const char* to_string(AttemptEvent event);

}  // namespace score::gang
