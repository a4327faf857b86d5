#pragma once
// This header declares the head role of scored, from the command line to the exit status.

#include <string>
#include <vector>

namespace score::head {

// `arguments` excludes the program's name. Returns 0 after an orderly stop, 1 if the head could not
// start or continue, and 2 for a bad command line or configuration; one line on stderr gives the
// reason.
int run_head(const std::vector<std::string>& arguments);

}  // namespace score::head
