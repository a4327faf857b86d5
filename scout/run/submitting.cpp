#include "scout/run/submitting.hpp"

#include "scout/run/front_end.hpp"
#include "scout/session/session.hpp"

#include <poll.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr int kRetryPause_ms = 100;

// Prevents jobs as root by accident; root's own one-user cluster has no other user.
Status check_root(const HeadLink& link, wire::Submit& submission) {
  if (geteuid() != 0 || submission.allow_root()) return {};
  if (!link.is_own_cluster()) {
    return fail(Errc::Denied, "not running a job as root; use --allow-root to run it");
  }
  submission.set_allow_root(true);
  return {};
}

// A head that closes the connection before its hello is being restarted: retries after each pause.
// A missing socket is an error at once, unless another head may take over.
Result<HeadLink> connect_surely(const std::string& server, const std::string& socket) {
  const TimePoint deadline = monotonic_now() + kReconnectFor;
  auto link = reach_head(server, socket);
  while (!link && link.error().is(Errc::Closed) && monotonic_now() < deadline) {
    ::poll(nullptr, 0, kRetryPause_ms);
    link = HeadLink::connect(socket);
  }
  return link;
}

}  // namespace

Result<wire::Submitted> submit_surely(HeadLink& link, const std::string& socket,
                                      const wire::Submit& submission) {
  const TimePoint deadline = monotonic_now() + kReconnectFor;
  auto submitted = link.ask<wire::Submitted>(submission);
  while (!submitted && submitted.error().is(Errc::Closed) && monotonic_now() < deadline) {
    ::poll(nullptr, 0, kRetryPause_ms);
    auto again = HeadLink::connect(socket);
    if (!again) continue;
    link = std::move(*again);
    submitted = link.ask<wire::Submitted>(submission);
  }
  return submitted;
}

Result<Request> open_request(const std::string& server, wire::Submit submission) {
  auto socket = find_server(server);
  if (!socket) return socket.error();
  auto link = connect_surely(server, *socket);
  if (!link) return link.error();
  if (const auto allowed = check_root(*link, submission); !allowed) return allowed.error();
  return Request{std::move(*socket), std::move(submission), std::move(*link)};
}

}  // namespace score::scout
