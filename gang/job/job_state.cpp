// This file is tested by states_test.cpp.
#include "gang/job/job_state.hpp"

namespace score::gang {

std::string_view to_string(base::JobState state) {
  return base::kJobStateWords.at(static_cast<std::size_t>(state));
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
