// What clients ask about jobs. Text of users is escaped here, once, where it becomes something to
// show; the specification itself is kept as it came.
#include "base/exit_codes.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "gang/matrix/shape.hpp"
#include "proto/convert/convert.hpp"
#include "scored/head/config/settings.hpp"
#include "scored/head/head.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace score::head {
namespace {

constexpr std::size_t kMaxShownCommand = 256;
constexpr std::size_t kMaxShownDirectory = 256;
constexpr std::int64_t kLatelyEnded = 200;  // shown by a list that asks for ended jobs
constexpr int kMaxListedJobs = 20'000;
constexpr std::size_t kMaxListBytes = 15 * limits::kMiB;
constexpr Duration kLongestWait = 24h * 36'500;  // a century; more would not fit a time point

std::string shown_command(const wire::LaunchSpec& spec) {
  std::string command;
  for (const std::string& argument : spec.argv()) {
    if (command.size() > kMaxShownCommand) break;
    if (!command.empty()) command += ' ';
    command += argument;
  }
  return escape_terminal(command, kMaxShownCommand);
}

// One task of an unknown job name is called after its program.
std::string shown_name(const wire::LaunchSpec& spec) {
  std::string name = spec.job_name();
  if (name.empty() && spec.argv_size() > 0) {
    const std::string& program = spec.argv(0);
    name = program.substr(program.find_last_of('/') + 1);
  }
  return escape_terminal(name, limits::kMaxJobNameBytes);
}

std::uint32_t tasks_of(const ResourceRequest& request) {
  const auto shape = gang::shape_of(request);
  return shape ? shape->tasks : 0;
}

}  // namespace

// ---- submission --------------------------------------------------------------------------------

void Head::submit(const Peer& peer, wire::Submit&& message, SubmitDone done) {
  RequestKey key(peer.user, RequestId());
  if (!message.request_id().empty()) {
    const auto request = proto::request_id_from_wire(message.request_id());
    if (!request) return done(request.error());
    key.second = *request;
  }
  if (answer_repeated(key, done)) return;
  auto checked = check(peer, message);
  if (!checked) return done(checked.error());
  checked->add.info.request = key.second;
  store_submission(std::move(checked->add), checked->request, done);
}

Result<wire::Planned> Head::plan(const Peer& peer, wire::Submit&& message) {
  const auto checked = check(peer, message);
  if (!checked) return checked.error();
  const auto planned = cluster_.plan(checked->request);
  if (!planned) return planned.error();
  wire::Planned out;
  out.set_starts(planned->state != JobState::Pending);
  for (const std::string& reason : planned->reasons) out.add_reasons(reason);
  for (const NodeId node : planned->nodes) out.add_nodes(links_.name(node));
  std::uint32_t tasks = 0;
  for (const std::uint32_t on_node : planned->tasks_on_node) {
    out.add_tasks_on_node(on_node);
    tasks += on_node;
  }
  out.set_tasks(out.starts() ? tasks : tasks_of(checked->request));
  out.set_slot(planned->slot ? static_cast<std::int32_t>(planned->slot->value()) : -1);
  out.set_tasks_per_core(planned->tasks_per_core);
  return out;
}

// All that can be said of a submission before it is stored, with defaults filled in.
Result<Head::Checked> Head::check(const Peer& peer, wire::Submit& message) {
  auto resources = proto::from_wire(message.resources());
  if (!resources) return resources.error();
  if (message.resources().weight() == 0) resources->weight = limits::kDefaultWeight;
  if (resources->requeue == Requeue::Default) {
    resources->requeue = config_.requeue ? Requeue::Yes : Requeue::No;
  }
  auto add = check_submission(peer, message, *resources);
  if (!add) return add.error();
  if (auto possible = cluster_.check(*resources); !possible) return possible.error();
  if (add->info.stdin_rank >= tasks_of(*resources)) {
    return fail(Errc::NotFound, "input is for rank {}, but there are {} tasks",
                add->info.stdin_rank, tasks_of(*resources));
  }
  return Checked{std::move(*add), *resources};
}

bool Head::is_limited(const Peer& peer) {
  return peer.role == proto::Role::OtherUser && !users_.is_exempt(peer.user, now());
}

std::size_t Head::jobs_of(UserId user) const {
  const auto found = jobs_of_.find(user);
  return found == jobs_of_.end() ? 0 : found->second;
}

void Head::count_out(UserId user) {
  const auto found = jobs_of_.find(user);
  if (found != jobs_of_.end() && --found->second == 0) jobs_of_.erase(found);
}

bool Head::answer_repeated(const RequestKey& key, const SubmitDone& done) {
  if (key.second.is_none()) return false;
  if (const auto waiting = storing_.find(key); waiting != storing_.end()) {
    waiting->second.push_back(done);
    return true;
  }
  const auto found = reader_.find_request(key.first, key.second);
  if (!found) {
    done(found.error());
    return true;
  }
  if (!*found) return false;
  wire::Submitted reply;
  reply.set_job((*found)->value());
  reply.set_repeated_request(true);
  done(reply);
  return true;
}

Status Head::check_limits(const Peer& peer, ResourceRequest& request) {
  if (!is_limited(peer)) return {};
  if (auto allowed = hold_to_limits(config_.limits, request); !allowed) return allowed;
  return check_job_count(config_.limits, jobs_of(peer.user));
}

Result<AddJob> Head::check_submission(const Peer& peer, wire::Submit& message,
                                      ResourceRequest& request) {
  wire::LaunchSpec& spec = *message.mutable_spec();
  if (auto sound = proto::check_launch_spec(spec); !sound) return sound.error();
  if (is_shutting_down_) return fail(Errc::WrongState, "the cluster is shutting down");
  if (active_ >= limits::kMaxActiveJobs) {
    return fail(Errc::Busy, "{} jobs are queued or running, no more are taken", active_);
  }
  if (commits_->pending() >= 4 * limits::kMaxGroupCommit) {
    return fail(Errc::Busy, "too many submissions at once, try again");
  }
  if (peer.user == UserId(0) && !message.allow_root()) {
    return fail(Errc::Denied, "jobs of root are refused without --allow-root");
  }
  const bool chooses = !request.only_nodes.empty() && !request.overlay;
  if (chooses && peer.role == proto::Role::OtherUser) {
    return fail(Errc::Denied, "only operators choose nodes by name (-w)");
  }
  if (auto allowed = check_limits(peer, request); !allowed) return allowed.error();
  *message.mutable_resources() = proto::to_wire(request);
  AddJob add;
  add.info.user = peer.user;
  add.info.name = shown_name(spec);
  add.info.command = shown_command(spec);
  add.info.directory = escape_terminal(spec.directory(), kMaxShownDirectory);
  add.info.resources = message.resources().SerializeAsString();
  add.info.stdin_rank = spec.stdin_path().empty() ? spec.stdin_rank() : -2;
  add.info.keep_going = spec.keep_going();
  add.info.immediate = std::clamp<Duration>(Duration(message.immediate_ns()), 0s, kLongestWait);
  add.info.submitted = wall_now();
  add.detached = message.detached();
  add.info.id = JobId(last_job_.value() + 1);
  spec.set_job(add.info.id.value());
  spec.set_user(peer.user.value());
  spec.clear_node_names();
  add.spec = spec.SerializeAsString();
  return add;
}

void Head::store_submission(AddJob&& add, const ResourceRequest& request, const SubmitDone& done) {
  last_job_ = add.info.id;
  ++jobs_of_[add.info.user];
  const RequestKey key(add.info.user, add.info.request);
  if (!key.second.is_none()) storing_[key].push_back(done);
  AddJob kept;
  kept.info = add.info;
  kept.detached = add.detached;
  commits_->add(std::move(add),
                [this, key, kept = std::move(kept), request, done](const Status& stored) mutable {
                  std::vector<SubmitDone> waiting = {done};
                  if (const auto found = storing_.find(key); found != storing_.end()) {
                    waiting = std::move(found->second);
                    storing_.erase(found);
                  }
                  Result<wire::Submitted> reply = wire::Submitted();
                  if (stored) {
                    reply->set_job(kept.info.id.value());
                  } else {
                    reply = stored.error().with_context("the job cannot be stored");
                  }
                  const bool is_stored = stored.has_value();
                  if (!is_stored) count_out(kept.info.user);
                  if (is_stored) begin_job(std::move(kept), request);
                  if (const auto view = cluster_.job(JobId(reply ? reply->job() : 0), now())) {
                    reply->set_tasks_per_core(view->tasks_per_core);
                  }
                  for (std::size_t i = 0; i < waiting.size(); ++i) {
                    if (is_stored) reply->set_repeated_request(i > 0);
                    waiting[i](reply);
                  }
                });
}

void Head::begin_job(AddJob&& add, const ResourceRequest& request) {
  const JobId id = add.info.id;
  Job& job = jobs_[id];
  job.info = std::move(add.info);
  job.progress.detached = add.detached;
  job.saved = job.progress;
  ++active_;
  const bool is_driven = !add.detached;
  streams_.open({id, is_driven, job.info.stdin_rank, false, request.distribution});
  if (is_driven) {
    deadlines_.set(id, DeadlineKind::FrontEnd, now() + config_.front_end_grace);
  }
  if (job.info.immediate > Duration{0}) {
    deadlines_.set(id, DeadlineKind::Immediate, now() + job.info.immediate);
  }
  note_event(job, job.info.submitted, "accepted");
  tell_job(job, "submitted", {});
  log_info("accept job", kv("job", id), kv("user", job.info.user), kv("name", job.info.name));
  auto actions = cluster_.submit(id, job.info.user, request, now());
  if (!actions) return refuse_stored(job, actions.error());
  if (job.info.keep_going) (void)cluster_.set_keep_going(id, true);
  perform(std::move(*actions));
}

// The cluster changed between the check and the commit (a reload): the job ends before it began.
void Head::refuse_stored(Job& job, const Error& error) {
  gang::JobView view;
  view.id = job.info.id;
  view.user = job.info.user;
  view.state = JobState::LaunchFailed;
  view.exit_code = kExitError;
  view.reasons = {error.message()};
  end(job, view);
}

// ---- streams ------------------------------------------------------------------------------------

Status Head::attach(const wire::Attach& message, ClientId client,
                    std::shared_ptr<proto::Connection> connection) {
  const JobId id(message.job());
  Job* job = find(id);
  if (job == nullptr) {  // it ended: its last word is all there is
    auto status = status_of(id);
    if (!status) return status.error();
    wire::JobEnded ended;
    ended.set_tag(message.tag());
    *ended.mutable_status() = std::move(*status);
    proto::send(*connection, ended);
    return {};
  }
  if (!job->ended) {
    auto status = status_of(id);
    if (!status) return status.error();
    wire::JobNews news;
    news.set_tag(message.tag());
    *news.mutable_status() = std::move(*status);
    proto::send(*connection, news);
  }
  JobStreams::Watch watch;
  watch.client = client;
  watch.connection = std::move(connection);
  watch.tag = message.tag();
  watch.front_end = message.front_end();
  watch.input = message.input();
  watch.window_bytes = message.window_bytes();
  watch.have_bytes = message.have_bytes();
  if (auto attached = streams_.attach(id, watch); !attached) return attached;
  if (message.front_end()) deadlines_.clear(id, DeadlineKind::FrontEnd);
  return {};
}

// A front end that leaves by request makes the job a detached one, also after a restart.
Status Head::detach(JobId id, ClientId client) {
  if (!streams_.detach(id, client)) return {};
  Job* job = find(id);
  if (job == nullptr || job->ended) return {};
  deadlines_.clear(id, DeadlineKind::FrontEnd);
  job->progress.detached = true;
  streams_.abandon(id);
  save_progress(*job);
  return {};
}

// ---- deadlines ----------------------------------------------------------------------------------

void Head::meet_deadline(const Deadlines::Due& due) {
  if (due.kind == DeadlineKind::Drop) return drop_if_done(due.job);
  Job* job = find(due.job);
  if (job == nullptr || job->ended) return;
  switch (due.kind) {
    case DeadlineKind::Kill:
      return finish_cancel(due.job, job->cancel_cause);
    case DeadlineKind::FrontEnd:
      if (streams_.has_front_end(due.job)) return;
      log_notice("end job without front end", kv("job", due.job));
      return finish_cancel(due.job, gang::EndCause::FrontEndGone);
    case DeadlineKind::Immediate:
      job->why_ended = fmt::format("could not start within {} (--immediate)",
                                   format_duration(job->info.immediate));
      job->exit_code = kExitError;
      return finish_cancel(due.job, gang::EndCause::User);
    case DeadlineKind::Drop:
      return;
  }
}

// ---- questions ----------------------------------------------------------------------------------

Result<UserId> Head::owner(JobId id) {
  if (const Job* job = find(id)) return job->info.user;
  auto status = status_of(id);
  if (!status) return status.error();
  return UserId(status->user());
}

Result<wire::JobStatus> Head::status_of(JobId id) {
  if (const Job* job = find(id)) {
    if (job->ended) return *job->ended;
    auto looked = view(id);
    if (!looked) return looked.error();
    auto status = status_of(*job, *looked);
    add_events(*job, status);
    return status;
  }
  auto stored = reader_.ended_status(id);
  if (!stored && stored.error().is(Errc::NotFound)) return fail(Errc::NotFound, "no job {}", id);
  if (!stored) return stored.error();
  wire::JobStatus status;
  if (!status.ParseFromString(*stored)) return fail(Errc::Malformed, "record of job {}", id);
  return status;
}

Result<wire::JobList> Head::list_jobs(const Peer& peer, const wire::ListJobs& message) {
  wire::JobList list;
  std::size_t bytes = 0;
  for (const std::uint64_t wanted : message.jobs()) {
    auto status = status_of(JobId(wanted));
    if (!status) return status.error();
    hide_from(peer, *status);
    bytes += status->ByteSizeLong() + 8;
    if (bytes > kMaxListBytes) {  // the same one asked for again and again, perhaps
      list.set_truncated(true);
      return list;
    }
    *list.add_jobs() = std::move(*status);
  }
  if (message.jobs_size() > 0) return list;
  for (const auto& [id, job] : jobs_) {
    if (job.ended || (!message.all_users() && job.info.user != peer.user)) continue;
    auto status = status_of(id);
    if (!status) continue;
    status->clear_events();
    hide_from(peer, *status);
    bytes += status->ByteSizeLong() + 8;
    if (list.jobs_size() >= kMaxListedJobs || bytes > kMaxListBytes) {
      list.set_truncated(true);
      return list;
    }
    *list.add_jobs() = std::move(*status);
  }
  if (message.finished()) add_ended(peer, message.all_users(), list);
  return list;
}

// Those on disk, and those whose end is on its way there.
void Head::add_ended(const Peer& peer, bool all_users, wire::JobList& list) {
  for (const auto& [id, job] : jobs_) {
    const bool shown = job.ended && !job.end_is_stored;
    if (!shown || !(all_users || job.info.user == peer.user)) continue;
    wire::JobStatus& added = *list.add_jobs();
    added = *job.ended;
    hide_from(peer, added);
  }
  const auto whose = all_users ? std::nullopt : std::optional(peer.user);
  const auto ended = reader_.lately_ended(whose, kLatelyEnded);
  if (!ended) return;
  for (const std::string& bytes : *ended) {
    wire::JobStatus status;
    if (!status.ParseFromString(bytes)) continue;
    status.clear_events();
    hide_from(peer, status);
    *list.add_jobs() = std::move(status);
  }
}

}  // namespace score::head
