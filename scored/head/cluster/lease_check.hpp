#pragma once
// LeaseCheck tells those who answer users whether this head is in charge. Of two heads only the
// holder of the lease may answer; a single head always may. Thread: the loop's.

#include <functional>
#include <utility>

namespace score::head {

class LeaseCheck {
 public:
  // `holds` must compare the end of the lease with the clock at each call, because the process may
  // have been stopped for any time.
  void use(std::function<bool()> holds) { holds_ = std::move(holds); }

  [[nodiscard]] bool holds() const { return !holds_ || holds_(); }

 private:
  std::function<bool()> holds_;
};

}  // namespace score::head
