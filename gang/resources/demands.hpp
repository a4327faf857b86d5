#pragma once
// What a job demands of its nodes beside cores and memory: features and generic resources. Can any
// nodes ever meet it? What is free now does not matter.

#include "base/model/model.hpp"
#include "base/result.hpp"
#include "gang/state/node_table.hpp"

#include <string>
#include <vector>

namespace score::gang {

// Has the node the features that the request names? One that was never seen may have.
[[nodiscard]] bool may_have_features(const Node& node, const base::ResourceRequest& request);

// `allowed`: see allowed_nodes(); `count`: nodes that the job needs at least. Errors: one line for
// the user (NotFound, TooLarge, Unsupported).
[[nodiscard]] base::Result<void> check_demands(const NodeTable& nodes,
                                               const base::ResourceRequest& request,
                                               const std::vector<bool>& allowed,
                                               std::uint32_t count);

}  // namespace score::gang
