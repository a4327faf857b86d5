// The control socket of a living cluster: one line asked, one line answered ("ok ..." or "error
// ...").
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <functional>
#include <string>

namespace score::scout {

Result<UniqueFd> listen_control(const std::string& path);
// Takes one connection that waits, if its user is ours or root, and answers its line.
void serve_control(int listener, const std::function<std::string(const std::string&)>& answer);
// Asks. Gives what follows "ok". Errors: the supervisor's text; errno codes.
Result<std::string> ask_control(const std::string& path, const std::string& request);

}  // namespace score::scout
