// A change is planned twice: check() plans it to store it, and prepare() to carry it out, because
// the job may have started or ended in the meantime. Planning changes nothing.
#include "scored/head/admin/change_commands.hpp"

#include "base/text/plain.hpp"
#include "proto/convert/convert.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace score::head {
namespace {

bool has(std::span<const JobKey> keys, std::initializer_list<JobKey> any) {
  return std::ranges::any_of(keys,
                             [&](JobKey key) { return std::ranges::find(any, key) != any.end(); });
}

bool may_all_run(std::span<const JobKey> keys) {
  return std::ranges::all_of(
      keys, [](JobKey key) { return find_job_key(static_cast<std::uint32_t>(key))->may_run; });
}

std::vector<JobKey> without(std::span<const JobKey> keys, JobKey left_out) {
  std::vector<JobKey> out(keys.begin(), keys.end());
  std::erase(out, left_out);
  return out;
}

std::string names_of(std::span<const JobKey> keys) {
  std::vector<std::string_view> names;
  for (const JobKey key : keys) names.push_back(key_name(key));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

// ---- the jobs -----------------------------------------------------------------------------------

Result<Job*> ChangeCommands::changeable(JobId id) {
  Job* job = head_.jobs.find(id);
  if (job == nullptr || job->ended) return fail(Errc::WrongState, "job {} has ended", id);
  if (job->info.step_of != JobId(0)) {
    return fail(Errc::Unsupported, "a step cannot be changed; change job {} instead",
                job->info.step_of);
  }
  if (job->ended_by || job->ends_as) return fail(Errc::WrongState, "job {} is ending", id);
  return job;
}

// Returns the job, and for an array also its tasks that are jobs. Those that have started keep
// what only a waiting job can change.
std::vector<JobId> ChangeCommands::targets(const Job& job, std::span<const JobKey> keys) const {
  std::vector<JobId> out = {job.info.id};
  if (!job.info.is_array()) return out;
  const auto& all = head_.jobs.all();
  for (auto next = all.upper_bound(job.info.id); next != all.end(); ++next) {
    const auto& [id, task] = *next;
    if (task.info.array != job.info.id || task.ended || task.ended_by) continue;
    if (task.progress.state == JobState::Completing) continue;
    if (task.progress.state == JobState::Pending || may_all_run(keys)) out.push_back(id);
  }
  return out;
}

Requested ChangeCommands::requested(const Job& job) const {
  Requested out;
  if (const auto view = head_.runner.view(job.info.id)) {
    out.resources = asked_request(job, *view);
  }
  out.name = job.info.name;
  if (const auto conditions = unpack_conditions(job.info.conditions)) out.conditions = *conditions;
  return out;
}

Change ChangeCommands::as_stored(const Job& job, const Requested& request) const {
  ResourceRequest resources = request.resources;
  // The hold of an array is stored with its record alone.
  const Job* array = job.info.is_task() ? head_.jobs.find(job.info.array) : nullptr;
  if (array != nullptr && array->is_held) resources.held = false;
  return SaveRequest{job.info.id, proto::to_wire(resources).SerializeAsString(), request.name,
                     pack_conditions(request.conditions)};
}

// ---- checks -------------------------------------------------------------------------------------

Result<std::vector<ChangeCommands::Planned>> ChangeCommands::plan(const Peer& peer,
                                                                  const ChangeJob& command) {
  const auto change = read_change(command.wanted);
  if (!change) return change.error();
  const auto job = changeable(command.job);
  if (!job) return job.error();
  std::vector<Planned> planned;
  for (const JobId id : targets(**job, change->keys)) {
    auto one = plan_one(peer, *head_.jobs.find(id), *change);
    if (!one) return one.error();
    planned.push_back(std::move(*one));
  }
  return planned;
}

// If several keys are changed, the error names the one without which the others pass.
Result<ChangeCommands::Planned> ChangeCommands::plan_one(const Peer& peer, const Job& job,
                                                         const JobChange& change) {
  const auto view = head_.runner.view(job.info.id);
  if (!view) return view.error();
  const bool is_array = job.info.is_array();
  const auto& all = head_.jobs.all();
  const bool has_tasks =
      is_array && (job.progress.started != WallTime() ||
                   std::any_of(all.upper_bound(job.info.id), all.end(), [&](const auto& entry) {
                     return entry.second.info.array == job.info.id;
                   }));
  const bool has_place = view->state != JobState::Pending;
  const std::vector<JobKey>& keys = change.keys;
  const ChangedJob state{job.info.id, has_place, view->restarts > 0, job.info.is_task(), has_tasks};
  if (auto may = check_keys(state, keys); !may) return may.error();
  const Requested before = requested(job);
  Requested after = apply_change(change, keys, before);
  if (has_place && peer.role == proto::Role::OtherUser) {
    if (auto lower = check_lowered(before.resources, after.resources); !lower) {
      return lower.error();
    }
  }
  const auto verdict = judge(peer, job, keys, after);
  if (verdict) return Planned{job.info.id, std::move(after)};
  if (verdict.error().is(Errc::WrongState)) return verdict.error();
  for (const JobKey key : keys) {
    if (keys.size() == 1) break;
    const auto rest = without(keys, key);
    Requested others = apply_change(change, rest, before);
    if (judge(peer, job, rest, others)) return verdict.error().with_context("{}", key_name(key));
  }
  return verdict.error().with_context("{}", names_of(keys));
}

// Only what is changed must be within the limits of users: an operator may have raised the rest.
Status ChangeCommands::judge_limits(const Peer& peer, const Job& job, std::span<const JobKey> keys,
                                    ResourceRequest& after) const {
  const bool is_limited = parts_.submissions.is_limited(peer);
  if (has(keys, {JobKey::NodeList}) && peer.role == proto::Role::OtherUser) {
    return fail(Errc::Denied, "only operators may choose nodes by name");
  }
  const UserLimits& limits = head_.config.limits;
  if (is_limited && has(keys, {JobKey::Queue})) {
    ResourceRequest queue;
    queue.queue = after.queue;
    queue.priority = -limits::kMaxPriority;
    if (auto allowed = check_limits(limits, queue); !allowed) return allowed;
  }
  if (is_limited && has(keys, {JobKey::Weight})) {
    if (auto allowed = check_weight(limits, after.weight); !allowed) return allowed;
  }
  if (is_limited && has(keys, {JobKey::Priority})) {
    if (auto allowed = check_priority(limits, after.priority); !allowed) return allowed;
  }
  const bool names_account = has(keys, {JobKey::Account});
  if (names_account || has(keys, {JobKey::Nodes, JobKey::Tasks, JobKey::Memory})) {
    auto admitted = parts_.shares.admit_change(job.info.user, is_limited, names_account, after);
    if (!admitted) return admitted;
  }
  if (after.account != job.info.account.str()) {
    const AccountRules& rules = head_.config.accounts;
    auto room = check_account_jobs(rules, after.account, head_.jobs.jobs_of(after.account));
    if (!room) return room;
  }
  if (!has(keys, {JobKey::Reservation, JobKey::Nodes, JobKey::Account})) return {};
  return parts_.reservations.admit(job.info.user, after);
}

// A job can wait only for jobs that were submitted before it, so that no jobs wait for each other.
Status ChangeCommands::judge_conditions(const Job& job, const Requested& after) const {
  for (const Dependency& dependency : after.conditions.after) {
    if (dependency.job < job.info.id) continue;
    return fail(Errc::Denied, "{}: a job can wait only for jobs that were submitted before it",
                name_of(dependency));
  }
  return parts_.waiting.check(after.conditions, after.resources.wall_limit);
}

Status ChangeCommands::judge(const Peer& peer, const Job& job, std::span<const JobKey> keys,
                             Requested& after) {
  ResourceRequest& request = after.resources;
  if (auto allowed = judge_limits(peer, job, keys, request); !allowed) return allowed;
  const bool waits = job.progress.state == JobState::Pending;
  if (waits && has(keys, {JobKey::After, JobKey::Begin, JobKey::Deadline, JobKey::ElapsedTime})) {
    if (auto sound = judge_conditions(job, after); !sound) return sound;
  }
  const gang::Cluster& cluster = head_.runner.cluster();
  auto possible = cluster.check_change(job.info.id, request, head_.runner.now());
  const bool is_sized = has(keys, {JobKey::Nodes, JobKey::Tasks, JobKey::TasksPerNode});
  if (!possible || !is_sized) return possible;
  const auto stored = head_.reader.spec(job.info.is_task() ? job.info.array : job.info.id);
  if (!stored) return stored.error();
  wire::LaunchSpec spec;
  if (!spec.ParseFromString(*stored)) return fail(Errc::Malformed, "cannot read the job");
  return check_tasks(spec, request, job.info.stdin_rank);
}

// ---- the steps of a command ---------------------------------------------------------------------

Result<Changes> ChangeCommands::check(const Peer& peer, const ChangeJob& command) {
  const auto planned = plan(peer, command);
  if (!planned) return planned.error();
  Changes changes;
  for (const Planned& one : *planned) {
    changes.push_back(as_stored(*head_.jobs.find(one.id), one.request));
  }
  return changes;
}

Result<Effect> ChangeCommands::prepare(const Peer& peer, const ChangeJob& command) {
  auto planned = plan(peer, command);
  if (!planned) return planned.error();
  return [this, id = command.job, planned = std::move(*planned)] {
    for (const Planned& one : planned) apply(one);
    // Commands about its tasks, and new tasks, may have been stored after check().
    if (planned.size() > 1) restore(id);
  };
}

void ChangeCommands::restore(JobId id) {
  const auto& all = head_.jobs.all();
  for (auto next = all.lower_bound(id); next != all.end(); ++next) {
    const Job& job = next->second;
    const bool is_about = job.info.id == id || job.info.array == id;
    if (is_about && !job.ended) head_.commits.add(as_stored(job, requested(job)));
  }
}

std::string ChangeCommands::reply_of(const ChangeJob& command) const {
  const Job* job = head_.jobs.find(command.job);
  const auto change = read_change(command.wanted);
  if (job == nullptr || !job->info.is_array() || !change || may_all_run(change->keys)) return {};
  std::size_t kept = 0;
  for (const auto& [id, task] : head_.jobs.all()) {
    const bool is_task = task.info.is_task() && task.info.array == command.job && !task.ended;
    kept += is_task && task.progress.state != JobState::Pending ? 1 : 0;
  }
  if (kept == 0) return {};
  return fmt::format("{} of job {} started before the change and {} not affected",
                     counted(kept, "task"), command.job, kept == 1 ? "is" : "are");
}

// ---- effects ------------------------------------------------------------------------------------

// The job waits for its conditions, or for them no more. `request` becomes what the cluster gets.
void ChangeCommands::settle_wait(Job& job, const std::string& old_name, ResourceRequest& request) {
  const bool waits = parts_.waiting.change(job, old_name);
  if (job.info.is_array()) {
    request.held = true;
    return;
  }
  if (waits && !job.is_deferred) job.is_held = request.held;
  if (!waits && job.is_deferred) {
    note_event(job, head_.runner.wall(), "no longer waits for other jobs or a time");
  }
  job.is_deferred = waits;
  request.held = request.held || waits;
}

void ChangeCommands::apply(const Planned& planned) {
  Job* job = head_.jobs.find(planned.id);
  if (job == nullptr || job->ended) return;
  const Requested& wanted = planned.request;
  ResourceRequest request = wanted.resources;
  JobInfo& info = job->info;
  const std::string old_name = info.name;
  const bool is_new_account = request.account != info.account.str();
  if (is_new_account) head_.jobs.count_out(info);
  info.account = head_.jobs.share(request.account);
  if (is_new_account) head_.jobs.count_in(info);
  if (is_new_account) parts_.shares.note(info);
  info.name = wanted.name;
  info.conditions = head_.jobs.share(pack_conditions(wanted.conditions));
  info.resources = head_.jobs.share(proto::to_wire(request).SerializeAsString());
  if (job->progress.state == JobState::Pending) {
    settle_wait(*job, old_name, request);
  } else {
    (void)parts_.waiting.change(*job, old_name);  // for jobs that wait for those of its name
  }
  auto actions = head_.runner.cluster().change(info.id, request, head_.runner.now());
  head_.runner.touch(info.id);
  head_.runner.perform(actions ? std::move(*actions) : gang::Actions());
  if (info.is_array()) parts_.arrays.open(*job);
}

}  // namespace score::head
