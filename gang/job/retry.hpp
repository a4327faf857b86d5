#pragma once
// Decides whether a job whose attempt has ended goes back to the queue.

#include <cstdint>

namespace score::gang {

// A fault of the job, as a program that does not exist, would end the next attempt too. A fault of
// the machine, as a node that does not answer, would not.
enum class Fault : std::uint8_t { Job, Machine };

enum class Retry : std::uint8_t {
  None,
  Launch,   // once more; the user notices nothing but the delay
  Restart,  // what the tasks did is lost
};

// AttemptEnd describes the end of an attempt and those of the attempts before it.
struct AttemptEnd {
  Fault fault = Fault::Job;
  bool has_run = false;        // a task has existed, or a lost node may have begun one
  bool may_restart = false;    // the job may run twice
  std::uint32_t launches = 0;  // repeated so far
  std::uint32_t restarts = 0;  // so far
};

// Returns what happens next; each kind of retry happens at most `most` times.
constexpr Retry retry_after(const AttemptEnd& end, std::uint32_t most) {
  if (end.fault == Fault::Job) return Retry::None;
  if (!end.has_run && end.launches < most) return Retry::Launch;
  return end.may_restart && end.restarts < most ? Retry::Restart : Retry::None;
}

}  // namespace score::gang
