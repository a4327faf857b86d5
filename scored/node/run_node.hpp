// The node role of scored, from the command line to the exit status.
#pragma once

#include <string>
#include <vector>

namespace score::node {

// `arguments`: without the program's name. 0: stopped as asked; 1: could not start; 2: bad command
// line or configuration. One line on stderr says why.
int run_node(const std::vector<std::string>& arguments);

}  // namespace score::node
