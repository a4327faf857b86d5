#pragma once
// The units of generic resources on one node, and the jobs that have them. A unit that is not
// shared has one job at most. Of a shared one each job has a part of the memory; that no two of
// them run at once is up to the caller, who knows rows.

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

// Whether a node that has `offered`, all free, has what is asked for.
[[nodiscard]] bool offers(std::span<const base::GenericResource> offered,
                          std::span<const base::GenericResource> wanted);

class UnitBook {
 public:
  // May this unit be taken, as far as others than the book are concerned?
  using Test = std::function<bool(const std::string& name, std::uint32_t index)>;

  struct Wish {
    std::span<const base::GenericResource> offered;  // by the node
    std::span<const base::GenericResource> wanted;
    std::span<const base::GenericResource> kept{};  // for another job: so many must remain
  };

  // The units with the fewest jobs, then the lowest. nullopt: too few may be taken.
  [[nodiscard]] std::optional<Shares> choose(const Wish& wish, const Test& test) const;

  // `wanted` says how much memory of each the job has.
  void take(base::JobId job, const Shares& shares, std::span<const base::GenericResource> wanted);
  void give_back(base::JobId job);

  // Kinds and numbers of units that have jobs.
  [[nodiscard]] Generic in_use() const;

  // All that jobs have is there, and no unit has more jobs or gives more memory than it may.
  [[nodiscard]] base::Result<void> check(std::span<const base::GenericResource> offered) const;

  friend bool operator==(const UnitBook&, const UnitBook&) = default;

 private:
  struct Holder {
    base::JobId job{0};
    base::Bytes memory{0};  // 0: all of the unit's

    friend bool operator==(const Holder&, const Holder&) = default;
  };

  [[nodiscard]] bool may_take(const base::GenericResource& kind, std::uint32_t index,
                              base::Bytes memory) const;
  [[nodiscard]] std::span<const Holder> holders(const std::string& name, std::uint32_t index) const;

  std::map<std::string, std::map<std::uint32_t, std::vector<Holder>>> units_;  // not empty
};

}  // namespace score::gang
