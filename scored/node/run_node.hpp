// Runs the node role of scored, from the command line to the exit status.
#pragma once

#include <string>
#include <vector>

namespace score::node {

// `arguments` are without the program's name. Returns 0 if stopped as asked, 1 if it could not
// start, 2 for a bad command line or configuration. One line on stderr gives the reason.
int run_node(const std::vector<std::string>& arguments);

}  // namespace score::node
