#include "scored/head/jobs/job_queries.hpp"

#include "base/limits.hpp"
#include "base/text/hostlist.hpp"

#include <algorithm>
#include <utility>

namespace score::head {
namespace {

constexpr std::int64_t kRecentlyEnded = 200;          // in a list that includes ended jobs
constexpr std::size_t kPageBytes = 1 * limits::kMiB;  // per list; exceeded by at most one job
constexpr std::int64_t kRowsPerPage = 1'000;       // of the accounting; limits the time per reply
constexpr std::uint32_t kHiddenUser = UINT32_MAX;  // no user has this number

wire::AccountingRow to_wire(const AccountedJob& job) {
  wire::AccountingRow row;
  row.set_job(job.id.value());
  row.set_user(job.user.value());
  row.set_name(job.name);
  row.set_state(static_cast<std::uint32_t>(job.state));
  row.set_exit_code(job.exit_code);
  row.set_signal(job.signal);
  row.set_node_count(static_cast<std::uint32_t>(job.nodes.size()));
  row.set_nodes(compress_hostlist(job.nodes));
  row.set_tasks(job.tasks);
  row.set_submitted_wall_ns(job.submitted.time_since_epoch().count());
  row.set_started_wall_ns(job.started.time_since_epoch().count());
  row.set_ended_wall_ns(job.ended.time_since_epoch().count());
  row.set_scheduled_ns(job.scheduled.count());
  row.set_filled_ns(job.filled.count());
  row.set_restarts(job.restarts);
  row.set_array_job(job.array.value());
  row.set_array_task(job.task);
  row.set_account(job.account);
  row.set_cores(job.cores);
  row.set_generic(job.generic);
  row.set_partition(job.partition);
  row.set_licenses(job.licenses);
  if (job.usage) *row.mutable_usage() = proto::to_wire(*job.usage);
  return row;
}

}  // namespace

Result<UserId> JobQueries::owner(JobId id) const {
  if (const Job* job = head_.jobs.find(id)) return job->info.user;
  auto found = status(id);
  if (!found) return found.error();
  return UserId(found->user());
}

JobId JobQueries::whole(JobId id) const {
  const Job* job = head_.jobs.find(id);
  JobId step_of = job != nullptr ? job->info.step_of : JobId();
  if (job == nullptr) {
    if (const auto ended = status(id)) step_of = JobId(ended->step_of());
  }
  return step_of != JobId() ? step_of : id;
}

wire::JobStatus JobQueries::status(const Job& job, const gang::JobView& view) const {
  auto status = make_status(job, {view, head_.users.name(job.info.user, head_.runner.now()),
                                  head_.runner.cluster().config().quantum, wall_now()});
  if (job.info.is_array()) add_array(job, status);
  return status;
}

// An array is running while one of its tasks has a place. Otherwise it waits for the reasons of its
// next task.
void JobQueries::add_array(const Job& array, wire::JobStatus& status) const {
  const ArrayTracker::View view = arrays_.view(array.info.id);
  wire::ArrayStatus& out = *status.mutable_array();
  out.set_waiting(view.waiting);
  out.set_waiting_count(view.counts.waiting);
  out.set_running_count(view.counts.running);
  out.set_completed_count(view.counts.completed);
  out.set_failed_count(view.counts.failed);
  if (is_final(static_cast<JobState>(status.state()))) return;
  if (view.counts.running > 0) status.set_state(static_cast<std::uint32_t>(JobState::Running));
  if (status.reasons_size() > 0) return;
  if (view.is_full) status.add_reasons("the maximum of its tasks is running (%)");
  const Job* task = view.in_queue ? head_.jobs.find(*view.in_queue) : nullptr;
  if (task == nullptr) return;
  const auto waits = head_.runner.view(*view.in_queue);
  if (!waits) return;
  for (const std::string& reason : reasons_of(*task, *waits)) status.add_reasons(reason);
}

Result<wire::JobStatus> JobQueries::status(JobId id) const {
  if (const Job* job = head_.jobs.find(id)) {
    if (job->ended) return *job->ended;
    const auto view = head_.runner.view(id);
    if (!view) return view.error();
    auto made = status(*job, *view);
    add_events(*job, made);
    add_steps(*job, made);
    return made;
  }
  auto stored = head_.reader.ended_status(id);
  if (!stored && stored.error().is(Errc::NotFound)) return fail(Errc::NotFound, "no job {}", id);
  if (!stored) return stored.error();
  wire::JobStatus read;
  if (!read.ParseFromString(*stored))
    return fail(Errc::Malformed, "cannot read the record of job {}", id);
  return read;
}

void JobQueries::add_steps(const Job& job, wire::JobStatus& out) const {
  for (const wire::StepStatus& ended : job.steps->ended) *out.add_steps() = ended;
  for (const JobId id : job.steps->active) {
    const Job* step = head_.jobs.find(id);
    const auto view = head_.runner.view(id);
    if (step != nullptr && view) *out.add_steps() = step_status(status(*step, *view));
  }
  std::sort(out.mutable_steps()->begin(), out.mutable_steps()->end(),
            [](const auto& a, const auto& b) { return a.step() < b.step(); });
}

// Returns false if the list is full.
bool JobQueries::add(const Peer& peer, wire::JobStatus status, std::size_t& bytes,
                     wire::JobList& list) const {
  hide_from(peer, status);
  bytes += status.ByteSizeLong() + 8;
  if (list.jobs_size() >= limits::kMaxJobsAsked || (list.jobs_size() > 0 && bytes > kPageBytes)) {
    list.set_truncated(true);
    return false;
  }
  *list.add_jobs() = std::move(status);
  return true;
}

Result<wire::JobList> JobQueries::list(const Peer& peer, const wire::ListJobs& message) const {
  if (message.jobs_size() > limits::kMaxJobsAsked) {
    return fail(Errc::TooLarge, "{} jobs in one request; ask for at most {} at a time",
                message.jobs_size(), limits::kMaxJobsAsked);
  }
  if (!message.tasks().empty()) return list_tasks(peer, message);
  wire::JobList list;
  std::size_t bytes = 0;
  for (const std::uint64_t wanted : message.jobs()) {
    auto found = status(JobId(wanted));
    if (!found && found.error().is(Errc::NotFound)) {
      list.add_missing(wanted);
      continue;
    }
    if (!found) return found.error();
    if (message.jobs_size() == 1) explain(*found);
    if (!add(peer, std::move(*found), bytes, list)) return list;
  }
  if (message.jobs_size() > 0) return list;
  const auto& all = head_.jobs.all();
  for (auto next = all.upper_bound(JobId(message.after_job())); next != all.end(); ++next) {
    const auto& [id, job] = *next;
    if (job.ended || (!message.all_users() && job.info.user != peer.user)) continue;
    if (job.info.is_task() && !message.expand()) continue;
    const auto view = head_.runner.view(id);
    if (view && !add(peer, status(job, *view), bytes, list)) return list;
  }
  if (message.finished()) add_ended(peer, message, list);
  return list;
}

// This takes the head some milliseconds, so it is done only for one job at a time.
void JobQueries::explain(wire::JobStatus& status) const {
  JobId job(status.job());
  if (status.has_array()) job = arrays_.view(job).in_queue.value_or(job);
  const auto at = head_.runner.cluster().expected_start(job);
  if (at) status.set_expected_start_wall_ns(head_.runner.wall_of(*at));
  status.set_share_reason(head_.runner.cluster().share_reason(job));
}

// Lists the tasks that are jobs; for all others, adds the array's record once.
Result<wire::JobList> JobQueries::list_tasks(const Peer& peer,
                                             const wire::ListJobs& message) const {
  if (message.jobs_size() != 1) return fail(Errc::Malformed, "tasks of one array at a time");
  const JobId array(message.jobs(0));
  const auto tasks = IndexSet::parse(message.tasks(), limits::kMaxJobsAsked);
  if (!tasks) return tasks.error().with_context("tasks of job {}", array);
  auto record = status(array);
  if (!record) return record.error();
  if (record->array_job() != array.value()) {
    return fail(Errc::NotFound, "job {} is not an array", array);
  }
  const auto active = arrays_.jobs(array, &*tasks);
  wire::JobList list;
  std::size_t bytes = 0;
  bool needs_record = false;
  for (auto task = tasks->next(0); task; task = tasks->next(*task + 1)) {
    const auto found = active.find(*task);
    const auto job = found != active.end() ? Result<JobId>(found->second)
                                           : head_.reader.ended_task(array, *task);
    auto one = job ? status(*job) : Result<wire::JobStatus>(job.error());
    if (!one) {
      needs_record = true;
    } else if (!add(peer, std::move(*one), bytes, list)) {
      return list;
    }
  }
  if (needs_record) add(peer, std::move(*record), bytes, list);
  return list;
}

// Adds the jobs whose end is on disk, and those whose end is being stored.
void JobQueries::add_ended(const Peer& peer, const wire::ListJobs& message,
                           wire::JobList& list) const {
  const bool all_users = message.all_users();
  for (const auto& [id, job] : head_.jobs.all()) {
    const bool shown = job.ended && !job.end_is_stored && (message.expand() || !job.info.is_task());
    if (!shown || !(all_users || job.info.user == peer.user)) continue;
    wire::JobStatus& added = *list.add_jobs();
    added = *job.ended;
    hide_from(peer, added);
  }
  const auto whose = all_users ? std::nullopt : std::optional(peer.user);
  const auto ended = head_.reader.lately_ended(whose, kRecentlyEnded, message.expand());
  if (!ended) return;
  for (const std::string& bytes : *ended) {
    wire::JobStatus read;
    if (!read.ParseFromString(bytes)) continue;
    read.clear_events();
    read.clear_steps();
    hide_from(peer, read);
    *list.add_jobs() = std::move(read);
  }
}

Result<wire::Accounting> JobQueries::accounting(const Peer& peer,
                                                const wire::GetAccounting& message) const {
  AccountQuery query;
  if (message.job() != 0) query.job = JobId(message.job());
  if (!message.all_users()) query.user = peer.user;
  query.since = WallTime(Duration(message.since_wall_ns()));
  query.after = JobId(message.after_job());
  query.limit = kRowsPerPage + 1;
  const auto jobs = head_.reader.accounting(query);
  if (!jobs) return jobs.error();
  wire::Accounting page;
  std::size_t bytes = 0;
  for (const AccountedJob& job : *jobs) {
    auto row = to_wire(job);
    row.set_user_name(head_.users.name(job.user, head_.runner.now()));
    if (!may_know(peer, job.user)) {
      row.set_user(kHiddenUser);
      row.clear_user_name();
      row.clear_name();
      row.clear_account();
    }
    bytes += row.ByteSizeLong();
    const bool is_full = page.rows_size() == kRowsPerPage || bytes > limits::kMaxFrameBytes;
    if (page.rows_size() > 0 && is_full) {
      page.set_more(true);
      break;
    }
    *page.add_rows() = std::move(row);
  }
  return page;
}

Result<wire::Profile> JobQueries::profile(const Peer& peer, JobId id) const {
  const auto user = owner(id);
  if (!user) return user.error();
  if (!may_know(peer, *user)) return fail(Errc::Denied, "job {} belongs to a different user", id);
  const Job* job = head_.jobs.find(id);
  if (job != nullptr) return profile_to_wire(*job->profile);
  const auto stored = head_.reader.profile(id);
  if (!stored) return stored.error();
  wire::Profile read;
  if (!read.ParseFromString(*stored))
    return fail(Errc::Malformed, "cannot read the profile of job {}", id);
  return read;
}

bool JobQueries::may_know(const Peer& peer, UserId user) const {
  return !head_.config.monitor.is_private || peer.role != proto::Role::OtherUser ||
         peer.user == user;
}

// The reasons of an end name programs, so they are hidden, too.
void JobQueries::hide_from(const Peer& peer, wire::JobStatus& status) const {
  if (may_know(peer, UserId(status.user()))) return;
  status.set_user(kHiddenUser);
  status.clear_user_name();
  status.clear_name();
  status.clear_account();
  status.clear_command();
  status.clear_directory();
  status.clear_events();
  status.clear_steps();
  status.clear_waits();
  if (is_final(static_cast<JobState>(status.state()))) status.clear_reasons();
}

}  // namespace score::head
