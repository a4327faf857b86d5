// ShortageWatch decides whether the node is short of memory, and when the head is to be told.
#pragma once

#include "base/model/model.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

#include <optional>

namespace score::node {

class ShortageWatch {
 public:
  static constexpr Duration kRepeat = std::chrono::seconds{2};  // while the node is short
  static constexpr Duration kParkedRepeat = std::chrono::seconds{5};

  // The node is short of memory if less than `least` is available. A shortage ends with half as
  // much again, so that it does not come and go with each page.
  explicit ShortageWatch(Bytes least) : least_(least) {}

  // Returns the report that is due: at each change, and repeated during a shortage and while memory
  // of jobs is in swap, because the head may have restarted.
  [[nodiscard]] std::optional<base::MemoryReport> note(Bytes available, bool has_parked,
                                                       TimePoint now);

  [[nodiscard]] bool is_short() const { return is_short_; }

 private:
  Bytes least_;
  bool is_short_ = false;
  std::optional<TimePoint> reported_;
};

}  // namespace score::node
