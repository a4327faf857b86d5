// Counts the processor time that an attempt has used at idle priority.
#pragma once

#include "scored/node/idle/idle_watch.hpp"
#include "scored/node/kernel/running_sum.hpp"

namespace score::node {

class FillAccount {
 public:
  // The attempt begins or ceases to run at idle priority. `used` is all of its processor time so
  // far; < 0: unknown. stop() returns the time that it has used since start(). Thread: the
  // switcher's.
  void start(Duration used);
  Duration stop(Duration used);

  // Thread: any.
  [[nodiscard]] bool fills() const { return fills_.is_open(); }

  // Returns the total without the current time of filling. Thread: any.
  [[nodiscard]] Duration before() const { return Duration{fills_.finished()}; }

  // Returns the total so far, as RunningSum::read(). Thread: any.
  [[nodiscard]] Duration read(const IdleWatch& watch) const;

 private:
  RunningSum fills_;  // of used()
};

}  // namespace score::node
