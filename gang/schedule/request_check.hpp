#pragma once
// Checks whether a request can run at all on the configured nodes. It does not matter what is free
// now.

#include "base/model/model.hpp"
#include "base/result.hpp"
#include "gang/matrix/shape.hpp"
#include "gang/state/node_table.hpp"

#include <vector>

namespace score::gang {

// Returns, per node, whether only_nodes, except_nodes, features and partition allow it; empty if
// all are allowed. An unknown node (a restarted head may have a different configuration) allows or
// excludes no node; an unknown partition allows none.
std::vector<bool> allowed_nodes(const NodeTable& nodes, const base::ResourceRequest& request);

// Computes the same for one node.
bool allows(const NodeTable& nodes, const base::ResourceRequest& request, NodeIndex node);

inline bool is_allowed(const std::vector<bool>& allowed, NodeIndex index) {
  return allowed.empty() || (index < allowed.size() && allowed[index]);
}

// Returns the request with its defaults, with as few tasks per core as possible if `overcommit`
// allows sharing. Errors: one line for the user (NotFound, TooLarge, Malformed).
base::Result<Shape> check_request(const NodeTable& nodes, const base::ResourceRequest& request,
                                  bool overcommit);

// Checks a job that was accepted and waits: it keeps waiting if its partition has shrunk or was
// removed since, because both may be undone. Errors: as of check_request().
base::Result<Shape> check_waiting(const NodeTable& nodes, const base::ResourceRequest& request,
                                  bool overcommit);

}  // namespace score::gang
