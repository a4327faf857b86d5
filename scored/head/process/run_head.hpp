#pragma once
// The head role of scored, from the command line to the exit status.

#include <string>
#include <vector>

namespace score::head {

// `arguments`: without the program's name. 0: stopped as asked; 1: could not start or go on; 2: bad
// command line or configuration. One line on stderr says why.
int run_head(const std::vector<std::string>& arguments);

}  // namespace score::head
