// Reads requests for hooks. Nothing of a request is trusted: its texts have only the characters of
// names and lists of nodes, and so has all that a hook's environment takes from it.
#pragma once

#include "base/result.hpp"
#include "scored/privileged/hooks/protocol.hpp"
#include "scored/shared/config/hooks_config.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace score::hooks {

struct Request {
  HookRequest data;
  Hook hook{};
  std::string node;
  std::string node_list;
};

// Errors: Malformed. `submits`: it must be for the submit hook, else for a different one.
[[nodiscard]] Result<Request> parse_request(std::string_view bytes, bool submits);

// Returns the whole environment of the hook. It looks the job's user up.
[[nodiscard]] std::vector<std::string> environment_of(const Request& request);

}  // namespace score::hooks
