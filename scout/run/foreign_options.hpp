// Explains options of srun that scrun does not have.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace score::scout {

// Returns a hint for the first option that srun has and scrun does not; empty if there is none.
std::string explain_foreign(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace score::scout
