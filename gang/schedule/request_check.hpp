#pragma once
// Can a request run at all, on the nodes that are configured? What is free now does not matter.

#include "base/model/model.hpp"
#include "base/result.hpp"
#include "gang/matrix/shape.hpp"
#include "gang/state/node_table.hpp"

#include <vector>

namespace score::gang {

// [node] By only_nodes, except_nodes and features; empty: all. A name that is not known (a
// restarted head may have another configuration) allows or excludes no node.
std::vector<bool> allowed_nodes(const NodeTable& nodes, const base::ResourceRequest& request);

// The same for one node.
bool allows(const NodeTable& nodes, const base::ResourceRequest& request, NodeIndex node);

inline bool is_allowed(const std::vector<bool>& allowed, NodeIndex index) {
  return allowed.empty() || (index < allowed.size() && allowed[index]);
}

// The request with its defaults, and with as few tasks per core as it takes where `overcommit`
// allows to share. Errors: one line for the user (NotFound, TooLarge, Malformed).
base::Result<Shape> check_request(const NodeTable& nodes, const base::ResourceRequest& request,
                                  bool overcommit);

}  // namespace score::gang
