#pragma once
// This table is the life cycle of a job on the head. docs/reference/states.md shows the same rows.

#include "base/model/model.hpp"

#include <array>
#include <optional>
#include <string_view>

namespace score::gang {

enum class JobEvent : std::uint8_t {
  Place,        // cores and memory were found: its nodes are asked to prepare
  AllPrepared,  // every node is ready to start it at once
  Suspend,      // requested by its owner or an operator
  Resume,       // likewise
  End,          // decided: cancel, limit, failing task, refusal, lost node, or all tasks ended
  Requeue,      // it lost a node, nothing of it is left, and it may try again
  AllGone,      // nothing of it runs anywhere any more; leads to the state that End decided on
};

// A step of the table gives the state after the event; an event that is not listed is not possible
// in that state. AllGone leads from Completing to the final state that was decided, so it is not in
// the table.
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
