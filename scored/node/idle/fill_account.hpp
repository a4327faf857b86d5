// Counts the processor time that an attempt has used at idle priority.
#pragma once

#include "scored/node/idle/idle_watch.hpp"

#include <atomic>

namespace score::node {

class FillAccount {
 public:
  // The attempt begins or ceases to run at idle priority. `used` is all of its processor time so
  // far; < 0: unknown. stop() returns the time that it has used since start(). Thread: the
  // switcher's.
  void start(Duration used);
  Duration stop(Duration used);

  // Thread: any.
  [[nodiscard]] bool fills() const { return fills_from_.load(std::memory_order_relaxed) >= 0; }

  // Returns the total without the current time of filling. Thread: any.
  [[nodiscard]] Duration before() const {
    return Duration{filled_.load(std::memory_order_relaxed)};
  }

  // Returns the total so far. Thread: any.
  [[nodiscard]] Duration read(const IdleWatch& watch) const;

 private:
  std::atomic<Duration::rep> filled_{0};
  std::atomic<Duration::rep> fills_from_{-1};  // used() at start(); < 0: it does not fill
};

}  // namespace score::node
