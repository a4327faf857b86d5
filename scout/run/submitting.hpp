// Submits a job even if the head restarts in the meantime.
#pragma once

#include "scout/session/command.hpp"
#include "scout/session/head_link.hpp"

#include <string>

namespace score::scout {

// Holds a submission and the connection to its head.
struct SubmitRequest {
  std::string socket;
  wire::Submit submission;
  HeadLink link;
};

// Submits the job, even if the head restarts before it answers. The same request id gives the same
// job, so the request can be repeated. A longer wait is reported to the user. request.link may be a
// new connection afterwards.
Result<wire::Submitted> submit_with_retry(const Invocation& invocation, SubmitRequest& request);

// Connects to the head that `server` (an option, may be empty) or the environment names. Errors:
// Denied for root, unless the submission allows it or the cluster is root's own.
Result<SubmitRequest> open_request(const Invocation& invocation, const std::string& server,
                                   wire::Submit submission);

}  // namespace score::scout
