#pragma once
// UnitRegistry records the units of generic resources on one node and the jobs that have them. A
// unit that is not shared has one job at most. For a shared unit each job has a part of its memory.
// The caller, which knows the rows, must ensure that no two of these jobs run at the same time.

#include "base/model/model.hpp"
#include "base/result.hpp"

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace score::gang {

using Generic = std::vector<base::GenericResource>;
using Shares = std::vector<base::GenericShare>;

// Returns whether a node that has `offered`, all free, has what is wanted.
[[nodiscard]] bool offers(std::span<const base::GenericResource> offered,
                          std::span<const base::GenericResource> wanted);

class UnitRegistry {
 public:
  // Returns whether this unit may be taken, apart from the registry itself.
  using Test = std::function<bool(const std::string& name, std::uint32_t index)>;

  struct UnitDemand {
    std::span<const base::GenericResource> offered;  // by the node
    std::span<const base::GenericResource> wanted;
    std::span<const base::GenericResource> kept{};  // this many must remain, for a different job
  };

  // Returns the units with the fewest jobs, then the lowest. Returns nullopt if too few may be
  // taken.
  [[nodiscard]] std::optional<Shares> choose(const UnitDemand& demand, const Test& test) const;

  // Takes the units; `wanted` gives the amount of memory that the job has of each.
  void take(base::JobId job, const Shares& shares, std::span<const base::GenericResource> wanted);
  void give_back(base::JobId job);

  // Returns the kinds and numbers of units that have jobs.
  [[nodiscard]] Generic in_use() const;

  // Checks that all units of jobs exist, and that no unit has more jobs or gives more memory than
  // allowed.
  [[nodiscard]] base::Result<void> check(std::span<const base::GenericResource> offered) const;

  friend bool operator==(const UnitRegistry&, const UnitRegistry&) = default;

 private:
  struct Holder {
    base::JobId job{0};
    base::Bytes memory{0};  // 0: all memory of the unit

    friend bool operator==(const Holder&, const Holder&) = default;
  };

  [[nodiscard]] bool may_take(const base::GenericResource& kind, std::uint32_t index,
                              base::Bytes memory) const;
  [[nodiscard]] std::span<const Holder> holders(const std::string& name, std::uint32_t index) const;

  std::map<std::string, std::map<std::uint32_t, std::vector<Holder>>> units_;  // not empty
};

}  // namespace score::gang
