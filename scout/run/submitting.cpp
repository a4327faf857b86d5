#include "scout/run/submitting.hpp"

#include "scout/run/front_end.hpp"
#include "scout/session/session.hpp"

#include <poll.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr int kRetryPause_ms = 100;

// Prevents jobs as root by accident. A one-user cluster of root has no other user, so root may run
// jobs there.
Status check_root(const HeadLink& link, wire::Submit& submission) {
  if (geteuid() != 0 || submission.allow_root()) return {};
  if (!link.is_own_cluster()) {
    return fail(Errc::Denied, "not running a job as root; use --allow-root to run it");
  }
  submission.set_allow_root(true);
  return {};
}

// Prints once that there is no head, after that has lasted for kSilentFor.
void report_loss_once(const Invocation& invocation, TimePoint begun, bool& has_reported) {
  if (has_reported || monotonic_now() - begun < kSilentFor) return;
  print_error(invocation, lost_head_text(kReconnectFor));
  has_reported = true;
}

// A head that closes the connection before its hello is restarting, so this retries after each
// pause. A missing socket is an error at once, unless a second head may take over.
Result<HeadLink> connect_with_retry(const Invocation& invocation, const std::string& server,
                                    const std::string& socket) {
  const TimePoint begun = monotonic_now();
  bool has_reported = false;
  auto link = reach_head(server, socket);
  while (!link && link.error().is(Errc::Closed) && monotonic_now() < begun + kReconnectFor) {
    report_loss_once(invocation, begun, has_reported);
    ::poll(nullptr, 0, kRetryPause_ms);
    link = HeadLink::connect(socket);
  }
  return link;
}

}  // namespace

Result<wire::Submitted> submit_with_retry(const Invocation& invocation, SubmitRequest& request) {
  HeadLink& link = request.link;
  const wire::Submit& submission = request.submission;
  auto submitted = link.ask<wire::Submitted>(submission);
  const TimePoint begun = monotonic_now();
  const TimePoint deadline = begun + kReconnectFor;
  bool has_reported = false;
  while (!submitted && submitted.error().is(Errc::Closed) && monotonic_now() < deadline) {
    report_loss_once(invocation, begun, has_reported);
    ::poll(nullptr, 0, kRetryPause_ms);
    auto again = HeadLink::connect(request.socket);
    if (!again) continue;
    link = std::move(*again);
    submitted = link.ask<wire::Submitted>(submission);
  }
  return submitted;
}

Result<SubmitRequest> open_request(const Invocation& invocation, const std::string& server,
                                   wire::Submit submission) {
  auto socket = find_server(server);
  if (!socket) return socket.error();
  auto link = connect_with_retry(invocation, server, *socket);
  if (!link) return link.error();
  if (const auto allowed = check_root(*link, submission); !allowed) return allowed.error();
  return SubmitRequest{std::move(*socket), std::move(submission), std::move(*link)};
}

}  // namespace score::scout
