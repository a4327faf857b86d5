#pragma once
// Knows the device files of this node's generic resources, and which of them a job may not open.

#include "base/result.hpp"
#include "scored/shared/config/generic_config.hpp"

#include <span>
#include <string>
#include <vector>

namespace score::node {

class CountedDevices {
 public:
  // `can_restrict` is true if the launcher can restrict devices. If not, tasks can open all of
  // them.
  CountedDevices(std::vector<GenericConfig> kinds, bool can_restrict)
      : kinds_(std::move(kinds)), can_restrict_(can_restrict) {}

  // Returns all devices except those of the job's units, in the format of
  // launcher::StartRequest::denied. Fails if one of the job's units has no device file. The
  // configuration may have changed since the job was placed.
  [[nodiscard]] Result<std::string> denied(std::span<const base::GenericShare> shares) const;

  // Returns the kinds of which tasks can open only the devices of their own units.
  [[nodiscard]] std::vector<std::string> restricted_kinds() const;

 private:
  std::vector<GenericConfig> kinds_;
  bool can_restrict_;
};

}  // namespace score::node
