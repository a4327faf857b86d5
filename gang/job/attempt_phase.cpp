// This file is tested by states_test.cpp.
#include "gang/job/attempt_phase.hpp"

namespace score::gang {

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::Absent:
      return "Absent";
    case Phase::Preparing:
      return "Preparing";
    case Phase::Prepared:
      return "Prepared";
    case Phase::Running:
      return "Running";
    case Phase::Exited:
      return "Exited";
  }
  return "?";
}

const char* to_string(AttemptEvent event) {
  switch (event) {
    case AttemptEvent::Prepare:
      return "Prepare";
    case AttemptEvent::Start:
      return "Start";
    case AttemptEvent::Signal:
      return "Signal";
    case AttemptEvent::Kill:
      return "Kill";
    case AttemptEvent::Forget:
      return "Forget";
    case AttemptEvent::Ready:
      return "Ready";
    case AttemptEvent::Refuse:
      return "Refuse";
    case AttemptEvent::Started:
      return "Started";
    case AttemptEvent::TaskEnd:
      return "TaskEnd";
    case AttemptEvent::Abort:
      return "Abort";
    case AttemptEvent::Done:
      return "Done";
    case AttemptEvent::Gone:
      return "Gone";
  }
  return "?";
}

}  // namespace score::gang
