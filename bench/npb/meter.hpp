// Counts the progress of a kernel, so that its speed can be read from outside while it runs.
#pragma once

namespace score::npb {

// One tick is a small piece of work, about that of a message: a received part of a transfer
// (Communicator), or some ten microseconds to a few milliseconds of a kernel's computing. Ticks of
// different kinds are not the same work, but every iteration has as many of each.
class Meter {
 public:
  Meter() = default;
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;
  virtual ~Meter() = default;

  virtual void tick() = 0;
};

}  // namespace score::npb
