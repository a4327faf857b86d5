// Implements --netns: one network namespace per node, and one more with a bridge that connects
// them. The namespaces have no names. They exist as long as the supervisor holds them or a process
// is in them, so none remains.
#pragma once

#include "base/os/fd.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace score::scout {

class NodeNetworks {
 public:
  // Creates the bridge's namespace (the head's, address 10.77.0.1/16) and one per node (10.77.x.y),
  // with the `ip` program. Links carry `mtu` bytes. Needs root. Errors name the step.
  static Result<NodeNetworks> create(std::uint32_t nodes, std::uint32_t mtu);

  static constexpr const char* kHeadAddress = "10.77.0.1";

  // Calls `work` with this thread in the head's or a node's namespace, and always returns to our
  // own namespace.
  template <typename Work>
  auto inside_head(Work work) {
    return inside(bridge_, std::move(work));
  }

  template <typename Work>
  auto inside_node(std::size_t index, Work work) {
    return inside(nodes_[index], std::move(work));
  }

 private:
  NodeNetworks() = default;

  struct Enter {  // for one scope
    Enter(const UniqueFd& target, const UniqueFd& own);
    ~Enter();
    const UniqueFd& own;
  };

  template <typename Work>
  auto inside(const UniqueFd& target, Work&& work) {
    const Enter entered(target, own_);
    return work();
  }

  Status join_node(std::size_t index);

  UniqueFd own_;
  UniqueFd bridge_;
  std::uint32_t mtu_ = 0;
  std::vector<UniqueFd> nodes_;
};

}  // namespace score::scout
