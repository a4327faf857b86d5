#include "scout/session.hpp"

#include <algorithm>

namespace score::scout {

int with_head(const Invocation& invocation, const CommonOptions& options,
              const std::function<Result<int>(HeadLink&)>& work) {
  const auto server = find_server(options.server);
  if (!server) return complain(invocation, server.error());
  auto head = HeadLink::connect(*server);
  if (!head) return complain(invocation, head.error());
  const auto result = work(*head);
  return result ? *result : complain(invocation, result.error());
}

Result<wire::JobList> ask_jobs(HeadLink& head, const std::vector<std::uint64_t>& jobs) {
  wire::ListJobs request;
  request.set_all_users(true);
  request.set_finished(true);
  for (const auto job : jobs) request.add_jobs(job);
  auto list = head.ask<wire::JobList>(request);
  if (!list) return list.error();
  for (const auto job : jobs) {
    const bool found = std::any_of(list->jobs().begin(), list->jobs().end(),
                                   [&](const auto& status) { return status.job() == job; });
    if (!found) return fail(Errc::NotFound, "no job {}", job);
  }
  return list;
}

}  // namespace score::scout
