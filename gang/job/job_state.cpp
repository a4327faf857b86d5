// This file is tested by states_test.cpp.
#include "gang/job/job_state.hpp"

namespace score::gang {

const char* to_string(base::JobState state) {
  switch (state) {
    case base::JobState::Pending:
      return "Pending";
    case base::JobState::Launching:
      return "Launching";
    case base::JobState::Running:
      return "Running";
    case base::JobState::Suspended:
      return "Suspended";
    case base::JobState::Completing:
      return "Completing";
    case base::JobState::Completed:
      return "Completed";
    case base::JobState::Failed:
      return "Failed";
    case base::JobState::Cancelled:
      return "Cancelled";
    case base::JobState::TimedOut:
      return "TimedOut";
    case base::JobState::NodeFailed:
      return "NodeFailed";
    case base::JobState::LaunchFailed:
      return "LaunchFailed";
  }
  return "?";
}

const char* to_string(JobEvent event) {
  switch (event) {
    case JobEvent::Place:
      return "Place";
    case JobEvent::AllPrepared:
      return "AllPrepared";
    case JobEvent::Suspend:
      return "Suspend";
    case JobEvent::Resume:
      return "Resume";
    case JobEvent::End:
      return "End";
    case JobEvent::Requeue:
      return "Requeue";
    case JobEvent::AllGone:
      return "AllGone";
  }
  return "?";
}

}  // namespace score::gang
