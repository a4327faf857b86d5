#include "scored/head/head.hpp"

#include "base/limits.hpp"
#include "base/os/log.hpp"
#include "proto/convert/convert.hpp"

#include <algorithm>
#include <unistd.h>
#include <utility>

namespace score::head {
namespace {

// A head that crashes loses at most this much of the jobs' use.
constexpr Duration kSavePeriod = 10s;

}  // namespace

Head::Head(asio::io_context& io, Clock& clock, HeadConfig config, const Recovered& recovered,
           Store store, StoreReader reader, DaemonRequests requests)
    : config_(std::move(config)),
      runner_(clock, config_.for_cluster()),
      reader_(std::move(reader)),
      alarm_(io, clock),
      feed_(clock),
      users_(config_.operators, UserId(::geteuid()), requests.directory),
      commits_(io, std::move(store)),
      context_{config_, runner_, jobs_, links_, users_, reader_, commits_, feed_, alarm_, lease_},
      streams_(links_),
      networks_(context_),
      volumes_(context_),
      shares_(context_),
      notices_(context_, recovered.incarnation),
      secrets_(context_),
      queries_(context_, array_tracker_),
      reservations_(context_),
      life_(context_, {queries_, streams_, networks_, volumes_, shares_, notices_}, *this),
      arrays_(context_, life_, array_tracker_),
      waiting_(context_, life_, arrays_),
      starter_(context_, streams_, secrets_),
      submit_hook_(io, clock, config_),
      submissions_(context_, {life_, waiting_, shares_, reservations_, submit_hook_, notices_}),
      overview_(context_, queries_, reservations_),
      traces_(clock, links_, alarm_),
      facts_(clock, links_, alarm_, config_),
      stacks_(context_, clock),
      deadlocks_(context_, stacks_),
      checkpoints_(context_, clock),
      control_(io, clock, links_),
      nodes_(context_, {streams_, control_, secrets_}, recovered.incarnation),
      hook_reports_(context_),
      admin_(context_, {config_, queries_, secrets_, life_, submissions_, arrays_, waiting_,
                        networks_, shares_, reservations_, std::move(requests)}) {
  jobs_.set_last_number(recovered.last_job);
  nodes_.set_last_number([this] { return jobs_.last_number(); });
  users_.set_exempt(config_.limits.exempt);
  users_.set_account_groups(config_.user_groups());
  nodes_.on_job_seen(
      [this](NodeId node, JobId last, bool is_proven) { submissions_.saw(node, last, is_proven); });
  starter_.prove_jobs([this](JobId job) { return nodes_.job_proof(job); });
  starter_.continue_from([this](JobId job) { return checkpoints_.last_set(job); });
  connect_runner();
}

void Head::connect_runner() {
  ClusterRunner::Handlers handlers;
  handlers.send = [this](NodeId node, HeadToNode&& message) {
    if (const auto* set = std::get_if<base::SetTimetable>(&message)) {
      return control_.set_timetable(node, *set);
    }
    starter_.send(node, std::move(message));
  };
  handlers.node_changed = [this](NodeId node) {
    nodes_.changed(node);
    if (const auto view = runner_.cluster().node(node)) notices_.node_changed(node, *view);
  };
  handlers.job_changed = [this](JobId job) {
    life_.changed(job);
    deadlocks_.changed(job);
  };
  handlers.settled = [this] {
    control_.publish_timetables();
    starter_.release_held();
    admin_.check_shutdown();
    alarm_.at(runner_.cluster().next_deadline());
  };
  runner_.connect(std::move(handlers));
}

ClientSession::Parts Head::for_clients() {
  return {context_, submissions_, life_,        queries_, streams_, overview_, traces_,
          facts_,   stacks_,      checkpoints_, admin_,   shares_,  nullptr,   {}};
}

NodeSession::Parts Head::for_nodes() {
  return {context_, nodes_, streams_,      networks_, volumes_,
          traces_,  facts_, hook_reports_, stacks_,   checkpoints_};
}

Monitoring::Parts Head::for_monitoring() {
  return {context_, life_, overview_, traces_, admin_, control_.network(), shares_, notices_};
}

// ---- recovery ----------------------------------------------------------------------------------

Result<std::unique_ptr<Head>> Head::open(asio::io_context& io, Clock& clock, HeadConfig config,
                                         Store store, StoreReader reader, DaemonRequests requests) {
  auto recovered = read(store);
  if (!recovered) return recovered.error();
  std::unique_ptr<Head> head(new Head(io, clock, std::move(config), *recovered, std::move(store),
                                      std::move(reader), std::move(requests)));
  if (auto done = head->recover(*recovered); !done) return done.error();
  return head;
}

Result<Head::Recovered> Head::read(Store& store) {
  Recovered recovered;
  auto incarnation = store.begin_incarnation();
  if (!incarnation) return incarnation.error();
  recovered.incarnation = *incarnation;
  auto last = store.last_job();
  if (!last) return last.error();
  recovered.last_job = *last;
  if (auto pruned = store.prune(limits::kMaxFinishedJobs); !pruned) return pruned.error();
  auto settings = store.settings();
  if (!settings) return settings.error();
  recovered.settings = std::move(*settings);
  auto jobs = store.active_jobs();
  if (!jobs) return jobs.error();
  recovered.jobs = std::move(*jobs);
  auto uses = store.uses();
  if (!uses) return uses.error();
  recovered.uses = std::move(*uses);
  return recovered;
}

Status Head::recover(const Recovered& recovered) {
  for (const std::string& name : config_.nodes) {
    if (auto added = admin_.add_node(name); !added) return added;
  }
  admin_.apply_rules();
  shares_.restore(recovered.uses);
  const StoredSettings settings = read_settings(recovered.settings);
  if (auto applied = apply_settings(settings); !applied) return applied;
  if (auto known = recover_jobs(recovered.jobs, settings.requeued); !known) return known;
  recover_cancels(recovered);
  recover_keepers(settings);
  reservations_.restore(settings.reserved);
  checkpoints_.restore(settings.saved);
  arrays_.settle_all();
  shares_.refresh();
  return {};
}

Status Head::apply_settings(const StoredSettings& stored) {
  gang::Cluster& cluster = runner_.cluster();
  const TimePoint now = runner_.now();
  for (const auto& [setting, value] : stored.values) apply_stored(setting, value);
  for (const auto& [name, reason] : stored.drained) {
    const auto node = links_.find(name);
    if (!node) continue;
    if (auto actions = cluster.drain(*node, reason, now)) runner_.perform(*actions);
  }
  return {};
}

// Setting a stored value may fail: the configuration may have been changed to a mode in which jobs
// cannot fill.
void Head::apply_stored(Setting setting, SettingValue value) {
  if (value == config_.settings[setting]) return;
  const SettingRule& rule = rule_of(setting);
  const auto text = [&](SettingValue one) { return format_setting(rule, one); };
  auto actions = runner_.cluster().set(setting, value, runner_.now());
  if (!actions) {
    return log_warning("Ignored a stored setting", kv("setting", rule.name),
                       kv("value", text(value)), kv("err", actions.error()));
  }
  runner_.perform(std::move(*actions));
  log_notice("Using a stored setting", kv("setting", rule.name), kv("value", text(value)),
             kv("configured", text(config_.settings[setting])));
}

Status Head::recover_jobs(const std::vector<StoredJob>& stored,
                          const std::map<JobId, StoredRequeue>& requeues) {
  std::vector<gang::RecoveredJob> recovered;
  recovered.reserve(stored.size());
  for (const StoredJob& one : stored) {
    auto job = recover_job(one);
    if (!job) return job.error().with_context("job {}", one.info.id);
    const auto requeue = requeues.find(one.info.id);
    if (requeue != requeues.end()) recover_requeue(requeue->second, *job);
    recovered.push_back(std::move(*job));
  }
  for (gang::RecoveredJob& one : recovered) defer_recovered(one);
  runner_.perform(runner_.cluster().recover(recovered, runner_.now()));
  for (const StoredJob& one : stored) {
    if (!one.info.keep_going) continue;
    const auto set = runner_.cluster().set_keep_going(one.info.id, true);
    if (!set)
      log_warning("Cannot restore --keep-going of job", kv("job", one.info.id),
                  kv("err", set.error()));
  }
  recover_ended_steps();
  if (!stored.empty()) log_notice("Recovered jobs", kv("count", stored.size()));
  return {};
}

// If the attempt has ended, the request is done, and only its count matters.
void Head::recover_requeue(const StoredRequeue& request, gang::RecoveredJob& job) {
  job.asked_restarts = request.count;
  const bool has_place = job.state != JobState::Pending && job.state != JobState::Launching;
  if (!has_place || job.attempt != request.attempt) return;
  --job.asked_restarts;
  job.is_requeued = true;
  job.lost = JobLife::why_requeued(request.by);
  if (job.state != JobState::Completing) life_.resume_requeue(*jobs_.find(job.id));
}

// Restores the steps that ended before this head started, of jobs that continue.
void Head::recover_ended_steps() {
  constexpr std::int64_t kMostRead = 2'000;
  const auto is_allocation = [](const auto& entry) { return entry.second.info.allocation; };
  if (std::ranges::none_of(jobs_.all(), is_allocation)) return;
  const auto ended = reader_.lately_ended(std::nullopt, kMostRead);
  if (!ended) return log_warning("Cannot read ended steps", kv("err", ended.error()));
  for (auto bytes = ended->rbegin(); bytes != ended->rend(); ++bytes) {
    wire::JobStatus status;
    if (!status.ParseFromString(*bytes) || status.step_of() == 0) continue;
    Job* job = jobs_.find(JobId(status.step_of()));
    if (job != nullptr) note_step_end(*job, status);
  }
}

// This runs after all jobs are known, because the job may wait for any of them.
void Head::defer_recovered(gang::RecoveredJob& recovered) {
  Job& job = *jobs_.find(recovered.id);
  job.is_held = recovered.request.held;
  job.is_deferred = defers(job);
  job.is_held = job.is_held && job.is_deferred;
  recovered.request.held = recovered.request.held || job.is_deferred;
  if (!job.info.is_task()) return;
  arrays_.add_task(job);
  // A hold of an array also holds its task in the queue; only the array's hold is stored.
  const Job* array = jobs_.find(job.info.array);
  if (array != nullptr && array->is_held) recovered.request.held = true;
}

// Uses the monotonic clock if its mark is still valid. The wall clock may have been set since.
TimePoint Head::start_of(const JobProgress& progress) const {
  const TimePoint at = runner_.now();
  if (progress.start_mark != TimePoint() && progress.start_mark <= at) return progress.start_mark;
  return at - std::max<Duration>(wall_now() - progress.started, 0s);
}

Result<gang::RecoveredJob> Head::recover_job(const StoredJob& stored) {
  wire::ResourceRequest resources;
  if (!resources.ParseFromString(stored.info.resources.str())) {
    return fail(Errc::Malformed, "cannot read its resources");
  }
  auto request = proto::from_wire(resources);
  if (!request) return request.error();
  JobInfo info = stored.info;
  info.step_of = request->inside;
  info.step = request->step;
  info.allocation = request->allocation;
  info.account = request->account;
  info.partition = request->partition;
  jobs_.count_in(info);
  Job& job = jobs_.add(std::move(info));
  job.progress = stored.progress;
  if (stored.rest != ArrayRest()) job.rest.edit() = stored.rest;
  set_saved(job, stored.progress);
  job.charged = stored.progress.scheduled;
  const Placement& placement = stored.progress.placement;
  for (const std::string& name : placement.nodes) {
    // The node may have left the configuration while the job ran. It is added, so that the job can
    // end.
    if (!links_.has(name)) {
      if (auto added = admin_.add_node(name); !added) return added.error();
    }
    job.nodes.push_back(*links_.find(name));
  }
  note_event(job, job.info.submitted, jobs_.share("accepted"));
  if (job.progress.started != WallTime()) note_event(job, job.progress.started, "tasks started");
  note_event(job, wall_now(), jobs_.share("the head was restarted; earlier events are lost"));
  streams_.open({job.info.id, job.info.user, !stored.progress.detached, job.info.stdin_rank, true,
                 request->distribution});
  if (placement.attempt != AttemptId() && request->allocation && !job.nodes.empty()) {
    streams_.place(job.info.id, placement.attempt, {job.nodes.front()}, {1});
  } else if (placement.attempt != AttemptId()) {
    streams_.place(job.info.id, placement.attempt, job.nodes, placement.tasks_on_node);
  }
  if (stored.progress.state == JobState::Running) streams_.start_input(job.info.id);
  life_.resume(job, stored.progress.state == JobState::Pending);
  gang::RecoveredJob recovered;
  recovered.id = job.info.id;
  recovered.user = job.info.user;
  recovered.request = std::move(*request);
  recovered.state = stored.progress.state;
  recovered.attempt = placement.attempt;
  recovered.nodes = job.nodes;
  recovered.cores = placement.cores;
  recovered.tasks_on_node = placement.tasks_on_node;
  recovered.units = placement.units;
  recovered.scheduled = stored.progress.scheduled;
  recovered.steps_usage = stored.progress.steps_usage;
  recovered.restarts = stored.progress.restarts;
  recovered.ending = stored.progress.ending;
  recovered.exit_code = stored.progress.exit_code;
  recovered.reasons = stored.progress.reasons;
  if (stored.progress.started != WallTime()) recovered.started = start_of(stored.progress);
  return recovered;
}

void Head::recover_from_copy() {
  const std::vector<NodeId> nodes = runner_.cluster().nodes();
  submissions_.await({nodes.begin(), nodes.end()}, runner_.now() + config_.rejoin_grace);
  nodes_.recover_with([this](Epoch newest) { take_newer_term(newest); });
}

void Head::take_newer_term(Epoch newest) {
  const Epoch next(newest.value() + 1);
  std::vector<Change> changes = {SaveSetting{"head_epoch", std::to_string(next.value())}};
  commits_.ask(std::move(changes), [this, next](const Status& stored) {
    if (stored && next > nodes_.incarnation()) nodes_.set_incarnation(next);
  });
}

void Head::recover_cancels(const Recovered& recovered) {
  for (const JobId id : read_settings(recovered.settings).cancelled) {
    Job* job = jobs_.find(id);
    if (job != nullptr && job->info.is_array()) {
      const std::string by = recovered.settings.at(cancel_setting(id, {}).key);
      arrays_.end(*job, "cancelled by " + by, config_.kill_grace);
    } else if (job != nullptr) {
      life_.resume_cancel(*job, recovered.settings.at(cancel_setting(id, {}).key));
    } else {
      commits_.add(cancel_setting(id, std::nullopt));
    }
  }
}

void Head::recover_keepers(const StoredSettings& settings) {
  for (const auto& [id, by] : settings.kept) {
    if (Job* job = jobs_.find(id)) {
      job->kept_by = by;
    } else {
      commits_.add(keep_setting(id, {}));
    }
  }
  for (const auto& [id, request] : settings.requeued) {
    if (jobs_.find(id) == nullptr) commits_.add(requeue_setting(id, std::nullopt));
  }
}

// ---- JobLife::Listener -------------------------------------------------------------------------

// An array is never placed; only its tasks are.
bool Head::defers(Job& job) {
  shares_.note(job.info);
  const bool waits = waiting_.add(job);
  if (job.info.is_array()) arrays_.add(job, waits);
  return waits || job.info.is_array();
}

void Head::accepted(Job& job) {
  if (job.info.is_array()) arrays_.open(job);
}

void Head::began(const Job& job) {
  arrays_.began(job);
  waiting_.began(job);
  const Job* array = job.info.is_task() ? jobs_.find(job.info.array) : nullptr;
  if (array != nullptr) waiting_.began(*array);
}

void Head::ended(const Job& job) {
  arrays_.ended(job);
  waiting_.ended(job);
}

// ---- time --------------------------------------------------------------------------------------

asio::awaitable<void> Head::run_timer() {
  for (;;) {
    const TimePoint next = tick();
    co_await alarm_.sleep_until(next);
  }
}

TimePoint Head::tick() {
  const TimePoint at = runner_.now();
  gang::Cluster& cluster = runner_.cluster();
  if (const auto due = cluster.next_deadline(); due && *due <= at) {
    runner_.perform(cluster.tick(at));
  }
  life_.tick(at);
  waiting_.tick();
  reservations_.tick();
  traces_.tick(at);
  facts_.tick(at);
  stacks_.tick(at);
  deadlocks_.tick(at);
  checkpoints_.tick(at);
  if (const auto due = admin_.next_deadline(); due && *due <= at) admin_.check_shutdown();
  if (at >= next_save_) {
    next_save_ = at + kSavePeriod;
    life_.save_running();
    arrays_.settle_all();
    runner_.perform({});
    shares_.refresh();
  }
  return next_deadline();
}

TimePoint Head::next_deadline() const {
  TimePoint next = next_save_;
  for (const auto& other :
       {runner_.cluster().next_deadline(), life_.next_deadline(), waiting_.next_deadline(),
        reservations_.next_deadline(), traces_.next_deadline(), facts_.next_deadline(),
        stacks_.next_deadline(), deadlocks_.next_deadline(), checkpoints_.next_deadline(),
        admin_.next_deadline()}) {
    if (other) next = std::min(next, *other);
  }
  return next;
}

}  // namespace score::head
