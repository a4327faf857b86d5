// Names are kept as they came, because programs read them in JSON. Each place that shows them on a
// terminal or writes them to a log escapes them.
#include "scored/head/jobs/submissions.hpp"

#include "base/limits.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "gang/matrix/shape.hpp"
#include "proto/convert/convert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace score::head {
namespace {

constexpr std::size_t kMaxShownCommand = 256;
constexpr std::size_t kMaxShownDirectory = 256;
constexpr Duration kLongestWait = 24h * 36'500;  // a century; more would not fit a time point

// Returns at most so many bytes, and does not cut a character in two.
std::string cut(std::string text, std::size_t most) {
  constexpr std::string_view kCut = "...";
  if (text.size() <= most) return text;
  std::size_t end = most - kCut.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
  return text += kCut;
}

std::string shown_command(const wire::LaunchSpec& spec) {
  std::string command;
  for (const wire::Program& program : spec.programs()) {
    if (!command.empty()) command += " :";
    for (const std::string& argument : program.argv()) {
      if (command.size() > kMaxShownCommand) break;
      if (!command.empty()) command += ' ';
      command += argument;
    }
  }
  return cut(std::move(command), kMaxShownCommand);
}

// A job without a name gets the name of its program.
std::string shown_name(const wire::LaunchSpec& spec) {
  std::string name = spec.job_name();
  if (name.empty()) {
    const std::string& program = spec.programs(0).argv(0);
    name = program.substr(program.find_last_of('/') + 1);
  }
  return cut(std::move(name), limits::kMaxJobNameBytes);
}

std::uint32_t tasks_of(const ResourceRequest& request) {
  const auto shape = gang::shape_of(request);
  return shape ? shape->tasks : 0;
}

// If there are several programs, each states how many tasks it has.
Status check_task_count(const wire::LaunchSpec& spec, std::uint32_t tasks) {
  if (spec.spawn() > 0 && spec.spawn() >= tasks) {
    return fail(Errc::Malformed, "room for {} spawned tasks, but the job has {} in all",
                spec.spawn(), tasks);
  }
  std::uint64_t sum = spec.spawn();
  for (const wire::Program& program : spec.programs()) sum += program.tasks();
  const bool is_all = spec.programs_size() == 1 && spec.programs(0).tasks() == 0;
  if (is_all || sum == tasks) return {};
  return fail(Errc::Malformed, "the programs have {} in all, but the job has {}",
              counted(sum, "task"), tasks);
}

}  // namespace

Status check_tasks(const wire::LaunchSpec& spec, const ResourceRequest& request,
                   std::int64_t stdin_rank) {
  const std::uint32_t tasks = request.allocation ? 1 : tasks_of(request);
  if (auto sound = check_task_count(spec, tasks); !sound) return sound;
  const std::uint32_t started = tasks - spec.spawn();
  if (request.allocation || stdin_rank < started) return {};
  return fail(Errc::NotFound, "input is for rank {}, but the job has {}", stdin_rank,
              counted(started, "task"));
}

void Submissions::submit(const Peer& peer, wire::Submit&& message, Done done) {
  RequestKey key(peer.user, RequestId());
  if (!message.request_id().empty()) {
    const auto request = proto::request_id_from_wire(message.request_id());
    if (!request) return done(request.error());
    key.second = *request;
  }
  if (answer_repeated(key, done)) return;
  if (parts_.hook.is_set() && message.resources().inside() == 0 && !message.resources().overlay())
    return ask_hook(peer, std::move(message), key, done);
  auto checked = check(peer, message);
  if (!checked) return done(checked.error());
  begin_storing(key, done);
  store(std::move(*checked), key, done);
}

Result<wire::Planned> Submissions::plan(const Peer& peer, wire::Submit&& message) {
  const auto checked = check(peer, message);
  if (!checked) return checked.error();
  const auto planned = head_.runner.cluster().plan(checked->request, peer.user);
  if (!planned) return planned.error();
  wire::Planned out;
  const JobInfo& info = checked->add.info;
  const auto conditions = unpack_conditions(info.conditions);
  if (!conditions) return conditions.error();
  for (std::string& wait : parts_.waiting.foresee(*conditions, info.user, info.name)) {
    out.add_reasons(std::move(wait));
  }
  if (out.reasons_size() > 0) {
    out.set_tasks(tasks_of(checked->request));
    out.set_slot(-1);
    return out;
  }
  out.set_starts(planned->state != JobState::Pending);
  for (const std::string& reason : planned->reasons) out.add_reasons(reason);
  for (const NodeId node : planned->nodes) out.add_nodes(head_.links.name(node));
  std::uint32_t tasks = 0;
  for (const std::uint32_t on_node : planned->tasks_on_node) {
    out.add_tasks_on_node(on_node);
    tasks += on_node;
  }
  out.set_tasks(out.starts() ? tasks : tasks_of(checked->request));
  out.set_slot(planned->slot ? static_cast<std::int32_t>(planned->slot->value()) : -1);
  out.set_tasks_per_core(planned->tasks_per_core);
  if (planned->expected_start) {
    out.set_expected_start_wall_ns(head_.runner.wall_of(*planned->expected_start));
  }
  return out;
}

void Submissions::await(std::set<NodeId> nodes, TimePoint until) {
  awaited_ = std::move(nodes);
  awaited_until_ = until;
}

void Submissions::saw(NodeId node, JobId last, bool is_proven) {
  awaited_.erase(node);
  const JobId known = head_.jobs.last_number();
  if (last <= known) return;
  if (!is_proven) {
    log_warning("Ignored an unproven job number", kv("node", head_.links.name(node)),
                kv("job", last), kv("last", known));
    return;
  }
  log_warning("The database is older than a node's state; continuing after its jobs",
              kv("node", head_.links.name(node)), kv("job", last), kv("last", known));
  head_.jobs.set_last_number(last);
}

bool Submissions::is_limited(const Peer& peer) {
  return peer.role == proto::Role::OtherUser &&
         !head_.users.is_exempt(peer.user, head_.runner.now());
}

bool Submissions::answer_repeated(const RequestKey& key, const Done& done) {
  if (key.second.is_none()) return false;
  if (const auto waiting = storing_.find(key); waiting != storing_.end()) {
    waiting->second.push_back(done);
    return true;
  }
  const auto found = head_.reader.find_request(key.first, key.second);
  if (!found) {
    done(found.error());
    return true;
  }
  if (!*found) return false;
  // A head that has just taken charge may be the only one that has this job.
  head_.commits.confirm({}, [done, job = **found](const Result<LogReceipt>& logged) {
    if (!logged) return done(logged.error());
    wire::Submitted reply;
    reply.set_job(job.value());
    reply.set_repeated_request(true);
    done(Logged<wire::Submitted>{std::move(reply), *logged});
  });
  return true;
}

// ---- checks -------------------------------------------------------------------------------------

// Makes all checks that are possible before a submission is stored, and fills in defaults.
Result<Submissions::Checked> Submissions::check(const Peer& peer, wire::Submit& message) {
  auto request = proto::from_wire(message.resources());
  if (!request) return request.error();
  if (message.resources().weight() == 0) request->weight = limits::kDefaultWeight;
  if (request->requeue == Requeue::Default) {
    request->requeue = head_.config.requeue ? Requeue::Yes : Requeue::No;
  }
  if (auto sound = proto::check_launch_spec(message.spec()); !sound) return sound.error();
  if (auto sound = check_kind(message, *request); !sound) return sound.error();
  if (auto known = fill_step(peer, message, *request); !known) return known.error();
  if (auto accepted = check_acceptance(peer, message, *request); !accepted) return accepted.error();
  const bool is_step = message.resources().inside() != 0;
  if (is_step && (message.has_conditions() || !message.array().empty())) {
    return fail(Errc::Malformed, "a step cannot be an array or wait for jobs or times");
  }
  if (is_step && message.notices().kinds() != 0) {
    return fail(Errc::Malformed,
                "no mail is sent about a step: give --mail-type to scbatch or scalloc");
  }
  const auto conditions = unpack_conditions(message.conditions().SerializeAsString());
  if (!conditions) return conditions.error();
  if (auto sound = parts_.waiting.check(*conditions, request->wall_limit); !sound) {
    return sound.error();
  }
  if (auto sound = check_notice_request(message.notices()); !sound) return sound.error();
  if (auto sound = check_array(message); !sound) return sound.error();
  *message.mutable_resources() = proto::to_wire(*request);
  AddJob add = make_job(peer, message);
  add.info.conditions = pack_conditions(*conditions);
  if (auto fits = check_bytes(peer, add.info.spec_bytes); !fits) return fits.error();
  if (auto possible = head_.runner.cluster().check(*request); !possible) return possible.error();
  if (auto sound = check_tasks(message.spec(), *request, add.info.stdin_rank); !sound) {
    return sound.error();
  }
  return Checked{std::move(add), std::move(*request)};
}

Status Submissions::check_kind(const wire::Submit& message, const ResourceRequest& request) {
  const bool has_script = !message.spec().script().empty();
  if (has_script == request.allocation) return {};
  if (has_script) return fail(Errc::Malformed, "a script needs an allocation to run in");
  return fail(Errc::Malformed, "an allocation needs a script");
}

// The step's job must be running and belong to the user. Values that the request leaves open are
// those of the job.
Status Submissions::fill_step(const Peer& peer, wire::Submit& message, ResourceRequest& request) {
  request.step = 0;
  message.mutable_spec()->clear_step();
  message.mutable_spec()->clear_job_env();
  if (request.inside == JobId(0)) return {};
  const JobId id = request.inside;
  Job* job = head_.jobs.find(id);
  if (job == nullptr && !head_.reader.ended_status(id))
    return fail(Errc::NotFound, "no job {}", id);
  if (job == nullptr || job->ended) return fail(Errc::WrongState, "job {} has ended", id);
  if (job->info.user != peer.user) return fail(Errc::Denied, "job {} belongs to another user", id);
  const auto view = head_.runner.view(id);
  if (!view) return view.error();
  request.step = job->steps->next;
  message.mutable_spec()->set_step(std::to_string(request.step));
  if (request.tasks == 0 && request.nodes == 0 && request.tasks_per_node == 0) {
    request.nodes = static_cast<std::uint32_t>(view->nodes.size());
    for (const std::uint32_t tasks : view->tasks_on_node) request.tasks += tasks;
  }
  if (message.resources().cpus_per_task() == 0) {
    request.cpus_per_task = view->request.cpus_per_task;
    message.mutable_spec()->set_cpus_per_task(request.cpus_per_task);
  }
  if (request.memory_per_node == Bytes{0}) request.memory_per_node = view->request.memory_per_node;
  request.account = job->info.account;
  return {};
}

Status Submissions::check_acceptance(const Peer& peer, const wire::Submit& message,
                                     ResourceRequest& request) {
  if (is_closed_) return fail(Errc::WrongState, "the cluster is shutting down");
  if (!awaited_.empty() && head_.runner.now() < awaited_until_) {
    return fail(Errc::Busy,
                "the head was started with --recover and waits for {} nodes; try again later",
                awaited_.size());
  }
  if (head_.jobs.active() >= limits::kMaxActiveJobs) {
    return fail(Errc::Busy, "the cluster is full: {} jobs are queued or running; try again later",
                head_.jobs.active());
  }
  if (head_.commits.pending() >= shares::kSubmissions.places || !pending_.has_place(peer.user)) {
    return fail(Errc::Busy, "too many submissions at once; try again");
  }
  if (peer.user == UserId(0) && !message.allow_root()) {
    return fail(Errc::Denied, "jobs of root are refused without --allow-root");
  }
  const bool is_step = request.inside != JobId(0);
  const bool names_nodes = !request.only_nodes.empty() && !request.overlay && !is_step;
  if (names_nodes && peer.role == proto::Role::OtherUser) {
    return fail(Errc::Denied, "only operators may choose nodes by name (-w)");
  }
  const bool takes_cores = !is_step && !request.overlay;
  if (request.overlay) request.account.clear();
  if (!takes_cores) request.partition.clear();  // a step runs where its job does
  if (takes_cores) {
    if (auto has = parts_.shares.admit(peer, is_limited(peer), request); !has) return has;
  }
  if (is_step) request.reservation.clear();  // it runs where its job does
  if (auto may = parts_.reservations.admit(peer.user, request); !may) return may;
  if (!is_limited(peer)) return {};
  if (auto allowed = check_limits(head_.config.limits, request); !allowed) return allowed;
  if (is_step) return head_.jobs.admits_step(peer.user);
  return check_job_count(head_.config.limits, head_.jobs.usage_of(peer.user).jobs);
}

Status Submissions::check_bytes(const Peer& peer, Bytes added) {
  const UserLimits& limits = head_.config.limits;
  if (auto fits = check_all_job_bytes(limits, head_.jobs.usage().specs + added); !fits) return fits;
  if (!is_limited(peer)) return {};
  return check_job_bytes(limits, head_.jobs.usage_of(peer.user).specs + added);
}

// Replaces the array's text by its short form.
Status Submissions::check_array(wire::Submit& message) {
  if (message.array().empty()) return {};
  const auto array = parse_array(message.array());
  if (!array) return array.error();
  if (!message.detached()) {
    return fail(Errc::Malformed, "an array has no front end: submit it with --detach");
  }
  if (message.spec().pty() || message.immediate_ns() > 0) {
    return fail(Errc::Malformed, "an array can have neither --pty nor --immediate");
  }
  message.set_array(text_of(*array));
  return {};
}

AddJob Submissions::make_job(const Peer& peer, wire::Submit& message) const {
  wire::LaunchSpec& spec = *message.mutable_spec();
  AddJob add;
  add.info.id = JobId(head_.jobs.last_number().value() + 1);
  add.info.user = peer.user;
  add.info.name = shown_name(spec);
  add.info.command = shown_command(spec);
  add.info.directory = cut(spec.directory(), kMaxShownDirectory);
  add.info.resources = message.resources().SerializeAsString();
  add.info.stdin_rank = spec.stdin_path().empty() ? spec.stdin_rank() : -2;
  add.info.keep_going = spec.keep_going();
  add.info.immediate = std::clamp<Duration>(Duration(message.immediate_ns()), 0s, kLongestWait);
  add.info.submitted = wall_now();
  add.detached = message.detached();
  if (const auto array = parse_array(message.array())) {
    add.info.array = add.info.id;
    add.rest = {message.array(), 0, array->tasks.size()};
  }
  const auto& resources = message.resources();
  add.info.step_of = JobId(resources.inside());
  add.info.step = resources.step();
  add.info.allocation = resources.allocation();
  add.info.account = resources.account();
  if (message.notices().kinds() != 0) add.info.notices = message.notices().SerializeAsString();
  add.info.partition = resources.partition();
  spec.set_job(resources.inside() != 0 ? resources.inside() : add.info.id.value());
  spec.set_user(peer.user.value());
  spec.set_key_space(fmt::format("{}.{:016x}", head_.config.cluster, RequestId::random().low));
  spec.clear_scratch_key();
  if (resources.scratch_bytes() > 0) spec.set_scratch_key(RequestId::random().to_string());
  spec.clear_nodelist();
  add.spec = spec.SerializeAsString();
  add.info.spec_bytes = Bytes(add.spec.size());
  return add;
}

// ---- the hook of the site -----------------------------------------------------------------------

// A submission that would be refused anyway does not cost a process.
void Submissions::ask_hook(const Peer& peer, wire::Submit&& message, const RequestKey& key,
                           const Done& done) {
  wire::Submit copy = message;
  if (const auto checked = check(peer, copy); !checked) return done(checked.error());
  begin_storing(key, done);
  const SubmittingUser who{peer.user, peer.name, peer.role != proto::Role::OtherUser};
  std::string text = describe_submission(copy, who);
  auto kept = std::make_shared<wire::Submit>(std::move(message));
  parts_.hook.ask(peer.user, std::move(text),
                  [this, peer, kept, key, done](const Result<SubmitAnswer>& answer) {
                    answered_by_hook(peer, answer, std::move(*kept), key, done);
                  });
}

void Submissions::answered_by_hook(const Peer& peer, const Result<SubmitAnswer>& answer,
                                   wire::Submit&& message, const RequestKey& key,
                                   const Done& done) {
  const auto refuse = [&](const Error& error) {
    for (const Done& one : end_storing(key, done)) one(error);
  };
  if (!answer) return refuse(answer.error());
  if (!answer->refusal.empty()) return refuse(fail(Errc::Denied, "{}", answer->refusal));
  if (!head_.lease.holds()) return refuse(fail(Errc::WrongState, "this head is not in charge"));
  apply(*answer, message);
  pending_.give_back(peer.user);  // check() counts the places that others have
  auto checked = check(peer, message);
  pending_.take(peer.user);
  if (!checked) return refuse(checked.error());
  store(std::move(*checked), key, done);
}

// ---- storing ------------------------------------------------------------------------------------

void Submissions::begin_storing(const RequestKey& key, const Done& done) {
  pending_.take(key.first);
  if (!key.second.is_none()) storing_[key].push_back(done);
}

std::vector<Submissions::Done> Submissions::end_storing(const RequestKey& key, const Done& done) {
  pending_.give_back(key.first);
  const auto found = storing_.find(key);
  if (found == storing_.end()) return {done};
  std::vector<Done> waiting = std::move(found->second);
  storing_.erase(found);
  return waiting;
}

void Submissions::store(Checked&& checked, const RequestKey& key, const Done& done) {
  AddJob add = std::move(checked.add);
  add.info.request = key.second;
  head_.jobs.set_last_number(add.info.id);
  head_.jobs.count_in(add.info);
  if (Job* job = head_.jobs.find(add.info.step_of)) job->steps.edit().next = add.info.step + 1;
  AddJob kept;
  kept.info = add.info;
  kept.detached = add.detached;
  kept.rest = add.rest;
  std::vector<Change> changes;
  changes.emplace_back(std::move(add));
  head_.commits.confirm(std::move(changes),
                        [this, key, kept = std::move(kept), request = std::move(checked.request),
                         done](const Result<LogReceipt>& logged) mutable {
                          const auto waiting = end_storing(key, done);
                          stored(logged, std::move(kept), request, waiting);
                        });
}

void Submissions::stored(const Result<LogReceipt>& logged, AddJob&& add,
                         const ResourceRequest& request, const std::vector<Done>& waiting) {
  if (!logged) {
    head_.jobs.count_out(add.info);
    const Error failed = logged.error().with_context("cannot store the job");
    for (const Done& done : waiting) done(failed);
    return;
  }
  wire::Submitted reply;
  reply.set_job(add.info.id.value());
  reply.set_step_of(add.info.step_of.value());
  reply.set_step(add.info.step);
  reply.set_no_mail(parts_.notices.lacks_mail(add.info.notices));
  parts_.life.begin(std::move(add), request);
  if (const auto view = head_.runner.view(JobId(reply.job()))) {
    reply.set_tasks_per_core(view->tasks_per_core);
  }
  for (const Done& done : waiting) {
    done(Logged<wire::Submitted>{reply, *logged});
    reply.set_repeated_request(true);
  }
}

}  // namespace score::head
