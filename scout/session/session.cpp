#include "scout/session/session.hpp"

#include "base/text/json_writer.hpp"
#include "scout/session/words.hpp"

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

int for_each_job(const Invocation& invocation, const CommonOptions& options,
                 const std::vector<std::uint64_t>& jobs,
                 const std::function<Result<void>(std::uint64_t)>& work) {
  int code = kExitOk;
  JsonWriter json;
  json.begin_object().field("schema", "scored.done/1").key("jobs").begin_array();
  for (const auto job : jobs) {
    const auto done = work(job);
    json.begin_object().field("job", job).field("done", static_cast<bool>(done));
    if (!done) {
      const Error error = about_job(done.error(), job);
      json.field("error", words_of(error));
      code = complain(invocation, error);
    }
    json.end_object();
  }
  if (options.json) print(json.end_array().end_object().text() + "\n");
  return code;
}

}  // namespace score::scout
