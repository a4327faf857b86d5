#pragma once
// The device files of this node's generic resources: which of them a job's tasks may not open.

#include "base/result.hpp"
#include "scored/config/generic_config.hpp"

#include <span>
#include <string>
#include <vector>

namespace score::node {

class CountedDevices {
 public:
  // can_restrict: the launcher may restrict devices; else tasks can open all of them.
  CountedDevices(std::vector<GenericConfig> kinds, bool can_restrict)
      : kinds_(std::move(kinds)), can_restrict_(can_restrict) {}

  // All but those of the units that the job has, as launcher::Request::denied. Errors: one of these
  // has no device file; unknown unit (the configuration has changed).
  [[nodiscard]] Result<std::string> denied(std::span<const base::GenericShare> shares) const;

  // Kinds of whose devices tasks can open none but those of their units.
  [[nodiscard]] std::vector<std::string> restricted_kinds() const;

 private:
  std::vector<GenericConfig> kinds_;
  bool can_restrict_;
};

}  // namespace score::node
