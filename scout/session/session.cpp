#include "scout/session/session.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/json_writer.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <poll.h>

namespace score::scout {
namespace {

constexpr Duration kTakeOver = std::chrono::seconds{5};
constexpr Duration kStable = std::chrono::seconds{2};
constexpr int kRetryPause_ms = 100;

// Returns "a:7421 and b:7421" if commands use the installed cluster and it has two heads, else "".
std::string heads_of(const std::string& option) {
  if (!uses_installed_cluster(option)) return {};
  return fmt::format("{}", fmt::join(read_installed().heads, " and "));
}

Error with_heads(const Error& error, const std::string& heads) {
  if (heads.empty()) return error;
  return Error(error.code(), fmt::format("{}; the heads of this cluster are {}", words_of(error),
                                         escape_terminal(heads, 400)));
}

// Adds what the user can do if nothing listens at the socket.
Error with_remedy(const Error& error, const std::string& option, const std::string& server) {
  const bool is_absent = error.is(std::errc::no_such_file_or_directory);
  if (!is_absent && !error.is(std::errc::connection_refused)) return error;
  const std::string where = "cannot reach the head at " + escape_terminal(server, 200);
  if (uses_installed_cluster(option) && server == kDefaultSocket) {
    return fail(Errc::NotFound,
                "{}: no cluster runs on this host; `score virtual -- bash` starts one here, "
                "SCORED_SERVER or --server names another",
                where);
  }
  return fail(Errc::NotFound, "{}: {}; has its cluster ended?", where, error.code().message());
}

// Tries to reach the head again until the deadline.
Result<HeadLink> reconnect(const Invocation& invocation, const std::string& server,
                           ReconnectOptions reconnecting, TimePoint deadline) {
  const TimePoint lost = monotonic_now();
  bool has_reported = false;
  for (;;) {
    ::poll(nullptr, 0, kRetryPause_ms);
    auto head = HeadLink::connect(server);
    const TimePoint now = monotonic_now();
    if (head && has_reported) print_error(invocation, "reconnected to the head");
    if (head || now >= deadline) return head;
    if (!reconnecting.reports_loss || has_reported || now - lost < kSilentFor) continue;
    print_error(invocation, lost_head_text(reconnecting.timeout));
    has_reported = true;
  }
}

}  // namespace

std::string lost_head_text(Duration timeout) {
  return fmt::format("lost connection to the head; retrying for {}", format_duration(timeout));
}

Result<HeadLink> reach_head(const std::string& option, const std::string& server) {
  auto head = HeadLink::connect(server);
  if (head) return head;
  const std::string heads = heads_of(option);
  if (heads.empty() && server.find(',') == server.npos) {
    return with_remedy(head.error(), option, server);
  }
  const TimePoint deadline = monotonic_now() + kTakeOver;
  while (!head && monotonic_now() < deadline) {
    ::poll(nullptr, 0, kRetryPause_ms);
    head = HeadLink::connect(server);
  }
  if (!head) return with_heads(head.error(), heads);
  return head;
}

int with_head(const Invocation& invocation, const CommonOptions& options,
              const std::function<Result<int>(HeadLink&)>& work, ReconnectOptions reconnecting) {
  const auto server = find_server(options.server);
  if (!server) return print_error(invocation, server.error());
  auto head = reach_head(options.server, *server);
  if (!head) return print_error(invocation, head.error());
  TimePoint begun = monotonic_now();
  TimePoint deadline{};
  auto result = work(*head);
  while (!result && reconnecting.is_called && result.error().is(Errc::Closed)) {
    const TimePoint lost = monotonic_now();
    // If a head closes each connection at once, the deadline stays and ends the retries.
    if (deadline == TimePoint{} || lost - begun > kStable) deadline = lost + reconnecting.timeout;
    head = reconnect(invocation, *server, reconnecting, deadline);
    begun = monotonic_now();
    if (!head || begun >= deadline) break;
    result = work(*head);
  }
  return result ? *result : print_error(invocation, result.error());
}

Result<wire::JobList> list_jobs(HeadLink& head, wire::ListJobs request) {
  std::map<std::uint64_t, wire::JobStatus> found;
  std::vector<std::uint64_t> order;  // as the head lists them
  for (bool is_last = false; !is_last;) {
    auto page = head.ask<wire::JobList>(request);
    if (!page) return page.error();
    for (auto& job : *page->mutable_jobs()) {
      const std::uint64_t id = job.job();
      if (found.insert_or_assign(id, std::move(job)).second) order.push_back(id);
    }
    is_last = !page->truncated() || page->jobs().empty();
    if (!is_last) request.set_after_job(order.back());
  }
  wire::JobList list;
  for (const auto id : order) *list.add_jobs() = std::move(found[id]);
  return list;
}

Result<FoundJobs> find_jobs(HeadLink& head, const std::vector<std::uint64_t>& jobs) {
  FoundJobs found;
  for (std::size_t next = 0; next < jobs.size();) {
    wire::ListJobs request;
    const std::size_t end = std::min<std::size_t>(jobs.size(), next + limits::kMaxJobsAsked);
    for (std::size_t i = next; i < end; ++i) request.add_jobs(jobs[i]);
    auto page = head.ask<wire::JobList>(request);
    if (!page) return page.error();
    const int answered = page->jobs_size() + page->missing_size();
    if (answered == 0) break;
    next += static_cast<std::size_t>(answered);
    for (auto& job : *page->mutable_jobs()) *found.list.add_jobs() = std::move(job);
    for (const auto id : page->missing()) {
      found.missing.push_back(fail(Errc::NotFound, "no job {}", id));
    }
  }
  return found;
}

Result<wire::JobList> ask_jobs(HeadLink& head, const std::vector<std::uint64_t>& jobs) {
  auto found = find_jobs(head, jobs);
  if (!found) return found.error();
  if (!found->missing.empty()) return found->missing.front();
  return std::move(found->list);
}

namespace {

Result<wire::JobList> ask_tasks(HeadLink& head, const JobWord& named) {
  wire::ListJobs request;
  request.add_jobs(named.job);
  request.set_tasks(named.tasks);
  return head.ask<wire::JobList>(request);
}

Result<std::vector<JobWord>> read_words(const std::vector<std::string>& words) {
  std::vector<JobWord> read;
  for (const auto& word : words) {
    auto named = parse_job_word(word);
    if (!named) return named.error();
    read.push_back(std::move(*named));
  }
  return read;
}

// Returns true if the error concerns one job; a lost connection concerns all.
bool is_about_one(const Error& error) {
  return error.is(Errc::NotFound) || error.code().category() == head_category();
}

}  // namespace

Result<FoundJobs> find_words(HeadLink& head, const std::vector<std::string>& words) {
  const auto read = read_words(words);
  if (!read) return read.error();
  FoundJobs all;
  std::vector<std::uint64_t> ids;
  for (const JobWord& named : *read) {
    if (named.tasks.empty() || named.step) {
      const auto id = find_job(head, named);
      if (id) ids.push_back(*id);
      if (!id && !is_about_one(id.error())) return id.error();
      if (!id) all.missing.push_back(id.error());
      continue;
    }
    auto page = ask_tasks(head, named);
    if (!page && !is_about_one(page.error())) return page.error();
    if (!page) {
      all.missing.push_back(page.error());
      continue;
    }
    for (auto& job : *page->mutable_jobs()) *all.list.add_jobs() = std::move(job);
  }
  auto found = find_jobs(head, ids);
  if (!found) return found.error();
  for (auto& job : *found->list.mutable_jobs()) *all.list.add_jobs() = std::move(job);
  all.missing.insert(all.missing.end(), found->missing.begin(), found->missing.end());
  return all;
}

Result<wire::JobStatus> ask_word(HeadLink& head, const std::string& word) {
  auto found = find_words(head, {word});
  if (!found) return found.error();
  if (found->list.jobs_size() > 0) return std::move(*found->list.mutable_jobs(0));
  if (!found->missing.empty()) return found->missing.front();
  return fail(Errc::NotFound, "no job {}", escape_terminal(word, 80));
}

Result<std::vector<std::uint64_t>> known_jobs(const Invocation& invocation, HeadLink& head,
                                              const std::vector<std::string>& words, int& code) {
  const auto read = read_words(words);
  if (!read) return read.error();
  std::vector<std::uint64_t> ids;
  for (const JobWord& named : *read) {
    const auto id = find_job(head, named);
    if (id) ids.push_back(*id);
    if (!id && !is_about_one(id.error())) return id.error();
    if (!id) code = print_error(invocation, id.error());
  }
  return ids;
}

int report_errors(const Invocation& invocation, const std::vector<Error>& errors) {
  int code = kExitOk;
  for (const Error& error : errors) code = print_error(invocation, error);
  return code;
}

Result<std::uint64_t> find_job(HeadLink& head, const JobWord& named) {
  std::uint64_t job = named.job;
  if (!named.tasks.empty()) {
    const auto tasks = ask_tasks(head, named);
    if (!tasks) return tasks.error();
    if (tasks->jobs_size() != 1 || tasks->jobs(0).job() == job) {
      return fail(Errc::NotFound, "{}_{} is not one task that has started", job, named.tasks);
    }
    job = tasks->jobs(0).job();
  }
  if (!named.step) return job;
  const auto list = ask_jobs(head, {job});
  if (!list) return list.error();
  for (const auto& step : list->jobs(0).steps()) {
    if (step.step() == *named.step) return step.job();
  }
  return fail(Errc::NotFound, "no step {}.{}", job, *named.step);
}

Result<std::uint64_t> find_job(HeadLink& head, std::string_view word) {
  const auto named = parse_job_word(word);
  if (!named) return named.error();
  return find_job(head, *named);
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
      code = print_error(invocation, error);
    }
    json.end_object();
  }
  if (options.json) print(json.end_array().end_object().text() + "\n");
  return code;
}

}  // namespace score::scout
