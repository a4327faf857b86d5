#pragma once
// The life of a job on the head, as a table. docs/reference/states.md shows the same rows.

#include "base/model/model.hpp"

#include <array>
#include <optional>
#include <string_view>

namespace score::gang {

enum class JobEvent : std::uint8_t {
  Place,        // cores and memory were found: its nodes are asked to prepare
  AllPrepared,  // every node could start it at once
  Suspend,      // asked by its owner or an operator
  Resume,       // likewise
  End,          // decided: cancel, limit, failing task, refusal, lost node, or all tasks ended
  Requeue,      // it lost a node, nothing of it is left, and it may try again
  AllGone,      // nothing of it runs anywhere any more: the state that End decided on
};

// The state after the event; nullopt: the event has no place in that state. AllGone leads from
// Completing to the final state that was decided, so it is not in the table.
struct JobStep {
  base::JobState from;
  JobEvent event;
  base::JobState to;
};

inline constexpr std::array kJobSteps = std::to_array<JobStep>({
    {base::JobState::Pending, JobEvent::Place, base::JobState::Launching},
    {base::JobState::Pending, JobEvent::End, base::JobState::Completing},
    {base::JobState::Launching, JobEvent::AllPrepared, base::JobState::Running},
    {base::JobState::Launching, JobEvent::End, base::JobState::Completing},
    {base::JobState::Running, JobEvent::Suspend, base::JobState::Suspended},
    {base::JobState::Running, JobEvent::End, base::JobState::Completing},
    {base::JobState::Suspended, JobEvent::Resume, base::JobState::Running},
    {base::JobState::Suspended, JobEvent::End, base::JobState::Completing},
    {base::JobState::Completing, JobEvent::Requeue, base::JobState::Pending},
});

constexpr std::optional<base::JobState> next_state(base::JobState from, JobEvent event) {
  for (const JobStep& step : kJobSteps) {
    if (step.from == from && step.event == event) return step.to;
  }
  return std::nullopt;
}

std::string_view to_string(base::JobState state);
const char* to_string(JobEvent event);

}  // namespace score::gang
