#pragma once
// Checks whether any nodes can ever meet a job's demands other than cores and memory: features and
// generic resources. It does not matter what is free now.

#include "base/model/model.hpp"
#include "base/result.hpp"
#include "gang/state/node_table.hpp"

#include <string>
#include <vector>

namespace score::gang {

// Returns whether the node has the features that the request names. A node that was never seen may
// have them.
[[nodiscard]] bool may_have_features(const Node& node, const base::ResourceRequest& request);

// Checks the demands. See allowed_nodes() for `allowed`; `count` is the number of nodes that the
// job needs at least. Errors: one line for the user (NotFound, TooLarge, Unsupported).
[[nodiscard]] base::Result<void> check_demands(const NodeTable& nodes,
                                               const base::ResourceRequest& request,
                                               const std::vector<bool>& allowed,
                                               std::uint32_t count);

}  // namespace score::gang
