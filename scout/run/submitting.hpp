// How a command submits a job although the head may be restarted meanwhile.
#pragma once

#include "scout/session/head_link.hpp"

#include <string>

namespace score::scout {

// Prevents jobs as root by accident; root's own one-user cluster has no other user. Errors: Denied.
Status check_root(const HeadLink& link, wire::Submit& submission);

// A head that closes the connection before its hello is being restarted: retries after each pause.
// A missing socket is an error at once.
Result<HeadLink> connect_surely(const std::string& socket);

// The head may be restarted before it answers. The same request id gives the same job, so that the
// request can be repeated.
Result<wire::Submitted> submit_surely(HeadLink& link, const std::string& socket,
                                      const wire::Submit& submission);

}  // namespace score::scout
