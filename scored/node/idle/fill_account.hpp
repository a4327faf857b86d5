// Processor time that an attempt used at idle priority.
#pragma once

#include "scored/node/idle/idle_watch.hpp"

#include <atomic>

namespace score::node {

class FillAccount {
 public:
  // It runs at idle priority from now on, or does not any more. `used`: all of its processor time
  // so far; < 0: unknown. stop() gives what it has used meanwhile. Thread: the switcher's.
  void start(Duration used);
  Duration stop(Duration used);

  // Thread: any.
  [[nodiscard]] bool fills() const { return fills_from_.load(std::memory_order_relaxed) >= 0; }

  // Until it fills now. Thread: any.
  [[nodiscard]] Duration before() const {
    return Duration{filled_.load(std::memory_order_relaxed)};
  }

  // So far. Thread: any.
  [[nodiscard]] Duration read(const IdleWatch& watch) const;

 private:
  std::atomic<Duration::rep> filled_{0};
  std::atomic<Duration::rep> fills_from_{-1};  // used then; < 0: it does not fill
};

}  // namespace score::node
