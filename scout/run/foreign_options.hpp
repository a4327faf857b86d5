// Options of srun that scrun does not have.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace score::scout {

// What srun knows and scrun does not, in words of scrun. Empty: nothing of that kind.
std::string explain_foreign(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace score::scout
