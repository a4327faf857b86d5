// How a command submits a job although the head may be restarted meanwhile.
#pragma once

#include "scout/session/command.hpp"
#include "scout/session/head_link.hpp"

#include <string>

namespace score::scout {

// A submission and the head that it is for.
struct Request {
  std::string socket;
  wire::Submit submission;
  HeadLink link;
};

// The head may be restarted before it answers. The same request id gives the same job, so that the
// request can be repeated; a longer wait is reported to the user. request.link is then another one.
Result<wire::Submitted> submit_surely(const Invocation& invocation, Request& request);

// Connects to the head that `server` (an option, may be empty) or the environment names. Errors:
// Denied for root, unless the submission allows it or the cluster is root's own.
Result<Request> open_request(const Invocation& invocation, const std::string& server,
                             wire::Submit submission);

}  // namespace score::scout
