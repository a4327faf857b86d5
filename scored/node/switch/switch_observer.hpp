// Something that looks at the attempts whenever the switcher's thread is awake.
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

  // Thread: the switcher's; no allocation, no wait. `boundary`: when it is called anyway. Returns
  // when it must be called besides.
  virtual std::optional<TimePoint> look(TimePoint now, std::optional<TimePoint> boundary,
                                        Entries entries) = 0;
};

}  // namespace score::node
