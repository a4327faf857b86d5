#pragma once
// A partition is a set of nodes to which jobs may be restricted by name. Partitions may overlap.
// The class is pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace score::gang {

struct Partition {
  std::string name;
  std::unordered_set<std::string> nodes;  // by name
  std::int32_t order = 0;  // waiting jobs of a partition with a larger one are placed earlier
};

class Partitions {
 public:
  // Replaces all partitions.
  void set(std::vector<Partition> all) { all_ = std::move(all); }

  [[nodiscard]] const std::vector<Partition>& all() const { return all_; }

  // Returns nullptr if there is none of this name.
  [[nodiscard]] const Partition* find(std::string_view name) const {
    for (const Partition& one : all_) {
      if (one.name == name) return &one;
    }
    return nullptr;
  }

  // Returns whether a job of this partition may use the node. A job without a partition may use
  // every node, and a job whose partition was removed may use none.
  [[nodiscard]] bool allow(std::string_view partition, const std::string& node) const {
    if (partition.empty()) return true;
    const Partition* found = find(partition);
    return found != nullptr && found->nodes.contains(node);
  }

  // Returns the order of the partition; 0 if there is none of this name.
  [[nodiscard]] std::int32_t order_of(std::string_view partition) const {
    const Partition* found = partition.empty() ? nullptr : find(partition);
    return found == nullptr ? 0 : found->order;
  }

 private:
  std::vector<Partition> all_;
};

}  // namespace score::gang
