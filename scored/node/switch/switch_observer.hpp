// Is called with the attempts whenever the switcher's thread is awake.
#pragma once

#include "base/time.hpp"

#include <memory>
#include <optional>
#include <span>

namespace score::node {

struct SwitchEntry;

class SwitchObserver {
 public:
  using Entries = std::span<const std::shared_ptr<SwitchEntry>>;

  SwitchObserver() = default;
  SwitchObserver(const SwitchObserver&) = delete;
  SwitchObserver& operator=(const SwitchObserver&) = delete;
  virtual ~SwitchObserver() = default;

  // Must neither allocate nor wait. `boundary` is when it will be called anyway. Returns when it
  // must be called in addition. Thread: the switcher's.
  virtual std::optional<TimePoint> observe(TimePoint now, std::optional<TimePoint> boundary,
                                           Entries entries) = 0;
};

}  // namespace score::node
