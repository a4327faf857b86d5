#include "scored/head/head.hpp"

#include "base/exit_codes.hpp"
#include "base/os/log.hpp"
#include "proto/convert/convert.hpp"
#include "scored/head/config/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

namespace score::head {
namespace {

// What running jobs have used is written this often, so that a crash forgives them little.
constexpr Duration kProgressSavePeriod = 10s;

}  // namespace

Head::Head(asio::io_context& io, Clock& clock, HeadConfig config, Store store, StoreReader reader)
    : io_(io),
      clock_(clock),
      config_(std::move(config)),
      cluster_(config_.for_cluster()),
      reader_(std::move(reader)),
      users_(config_.operators, UserId(::geteuid())),
      streams_(links_, {.front_end_lost =
                            [this](JobId job) {
                              deadlines_.set(job, DeadlineKind::FrontEnd,
                                             now() + config_.front_end_grace);
                              wake_timer();
                            },
                        .delivered =
                            [this](JobId job) {
                              deadlines_.set(job, DeadlineKind::Drop, now());
                              wake_timer();
                            },
                        .broken =
                            [this](AttemptId attempt, std::string why) {
                              const Job* job = find(job_of(attempt));
                              if (job == nullptr || job->nodes.empty()) return;
                              AbortRequested abort;
                              abort.attempt = attempt;
                              abort.code = kExitError;
                              abort.message = std::move(why);
                              perform(cluster_.node_says(job->nodes.front(), abort, now()));
                            }}),
      networks_(config_.network.channels),
      wake_(io, 1),
      store_(std::move(store)) {
  users_.set_exempt(config_.limits.exempt);
}

Head::~Head() = default;

void Head::stop() {
  if (commits_) commits_->stop();
}

void Head::after_stored(std::function<void()> then) {
  commits_->after([then = std::move(then)](const Status&) { then(); });
}

Job* Head::find(JobId job) {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : &found->second;
}

// ---- recovery ----------------------------------------------------------------------------------

Status Head::recover() {
  auto incarnation = store_->begin_incarnation();
  if (!incarnation) return incarnation.error();
  incarnation_ = *incarnation;
  auto last = store_->last_job();
  if (!last) return last.error();
  last_job_ = *last;
  if (auto pruned = store_->prune(limits::kMaxFinishedJobs); !pruned) return pruned;
  for (const std::string& name : config_.nodes) {
    if (auto added = add_node(name); !added) return added;
  }
  auto settings = store_->settings();
  if (!settings) return settings.error();
  if (auto applied = apply_settings(*settings); !applied) return applied;
  auto jobs = store_->active_jobs();
  if (!jobs) return jobs.error();
  commits_.emplace(io_, std::move(*store_));
  store_.reset();
  if (auto recovered = recover_jobs(*jobs); !recovered) return recovered;
  recover_cancels(*settings);
  for (const auto& [id, by] : read_settings(*settings).kept) {
    if (Job* job = find(id)) {
      job->kept_by = by;
    } else {
      commits_->add(keep_setting(id, std::nullopt));
    }
  }
  return {};
}

// They were told SIGTERM; what is left of them has one more grace.
void Head::recover_cancels(const std::map<std::string, std::string>& settings) {
  for (const JobId id : read_settings(settings).cancelled) {
    if (Job* job = find(id)) {
      job->is_being_cancelled = true;
      job->why_ended = "cancelled by " + settings.at(cancel_setting(id, {}).key);
      deadlines_.set(id, DeadlineKind::Kill, now() + config_.kill_grace);
    } else {
      commits_->add(cancel_setting(id, std::nullopt));
    }
  }
}

Status Head::add_node(const std::string& name) {
  return cluster_.add_node(links_.add(name), name);
}

Status Head::apply_settings(const std::map<std::string, std::string>& settings) {
  const StoredSettings stored = read_settings(settings);
  if (stored.quantum && *stored.quantum != config_.quantum) {
    auto actions = cluster_.set_quantum(*stored.quantum, now());
    if (actions) perform(std::move(*actions));
    log_notice("use stored quantum", kv("quantum", format_duration(*stored.quantum)),
               kv("configured", format_duration(config_.quantum)));
  }
  if (stored.slots && *stored.slots != config_.slots) {
    auto actions = cluster_.set_max_slots(*stored.slots, now());
    if (actions) perform(std::move(*actions));
    log_notice("use stored slots", kv("slots", *stored.slots), kv("configured", config_.slots));
  }
  if (stored.idle_detection && *stored.idle_detection != config_.idle_detection) {
    perform(cluster_.set_idle_detection(*stored.idle_detection, now()));
    log_notice("use stored idle detection", kv("on", *stored.idle_detection),
               kv("configured", config_.idle_detection));
  }
  for (const auto& [name, reason] : stored.drained) {
    const auto node = links_.find(name);
    if (!node) continue;
    if (auto actions = cluster_.drain(*node, reason, now())) perform(std::move(*actions));
  }
  return {};
}

Status Head::recover_jobs(const std::vector<StoredJob>& stored) {
  std::vector<gang::RecoveredJob> recovered;
  recovered.reserve(stored.size());
  for (const StoredJob& one : stored) {
    auto job = recover_job(one);
    if (!job) return job.error().with_context("job {}", one.info.id);
    recovered.push_back(std::move(*job));
  }
  perform(cluster_.recover(recovered, now()));
  for (const StoredJob& one : stored) {
    if (one.info.keep_going) {
      const auto set = cluster_.set_keep_going(one.info.id, true);
      if (!set) log_warning("cannot keep going", kv("job", one.info.id), kv("err", set.error()));
    }
  }
  if (!stored.empty()) log_notice("recover jobs", kv("count", stored.size()));
  return {};
}

// By the monotonic clock if it was the same then: the other one may have been set since.
TimePoint Head::start_of(const JobProgress& progress) const {
  const TimePoint at = now();
  if (progress.start_mark != TimePoint() && progress.start_mark <= at) return progress.start_mark;
  return at - std::max<Duration>(wall_now() - progress.started, 0s);
}

Result<gang::RecoveredJob> Head::recover_job(const StoredJob& stored) {
  wire::ResourceRequest resources;
  if (!resources.ParseFromString(stored.info.resources)) {
    return fail(Errc::Malformed, "its resources cannot be read");
  }
  auto request = proto::from_wire(resources);
  if (!request) return request.error();
  Job& job = jobs_[stored.info.id];
  job.info = stored.info;
  job.progress = stored.progress;
  job.saved = stored.progress;
  for (const std::string& name : stored.progress.placement.nodes) {
    // A node that left the configuration while the job ran: known again, so that the job can end.
    if (!links_.has(name)) {
      if (auto added = add_node(name); !added) return added.error();
    }
    job.nodes.push_back(*links_.find(name));
  }
  note_event(job, job.info.submitted, "accepted");
  if (job.progress.started != WallTime()) note_event(job, job.progress.started, "tasks started");
  note_event(job, wall_now(), "the head was restarted; what came before is not known any more");
  ++active_;
  ++jobs_of_[job.info.user];
  const Placement& placement = stored.progress.placement;
  const bool is_driven = !stored.progress.detached;
  streams_.open({job.info.id, is_driven, job.info.stdin_rank, true, request->distribution});
  if (placement.attempt != AttemptId()) {
    streams_.place(job.info.id, placement.attempt, job.nodes, placement.tasks_on_node);
  }
  if (stored.progress.state == JobState::Running) streams_.start_input(job.info.id);
  if (is_driven) {
    deadlines_.set(job.info.id, DeadlineKind::FrontEnd, now() + config_.front_end_grace);
  }
  if (job.info.immediate > Duration{0} && stored.progress.state == JobState::Pending) {
    deadlines_.set(job.info.id, DeadlineKind::Immediate, now() + job.info.immediate);
  }
  gang::RecoveredJob recovered;
  recovered.id = job.info.id;
  recovered.user = job.info.user;
  recovered.request = std::move(*request);
  recovered.state = stored.progress.state;
  recovered.attempt = placement.attempt;
  recovered.nodes = job.nodes;
  recovered.cores = placement.cores;
  recovered.tasks_on_node = placement.tasks_on_node;
  recovered.scheduled = stored.progress.scheduled;
  recovered.restarts = stored.progress.restarts;
  recovered.ending = stored.progress.ending;
  recovered.exit_code = stored.progress.exit_code;
  recovered.reasons = stored.progress.reasons;
  if (stored.progress.started != WallTime()) recovered.started = start_of(stored.progress);
  return recovered;
}

// ---- time --------------------------------------------------------------------------------------

asio::awaitable<void> Head::run_timer() {
  using namespace asio::experimental::awaitable_operators;
  for (;;) {
    armed_for_ = tick();
    if (armed_for_) {
      co_await (clock_.sleep_until(*armed_for_) || wake_.async_receive(kNoThrow));
    } else {
      co_await wake_.async_receive(asio::use_awaitable);
    }
  }
}

std::optional<TimePoint> Head::tick() {
  const TimePoint at = now();
  if (const auto due = cluster_.next_deadline(); due && *due <= at) perform(cluster_.tick(at));
  for (const Deadlines::Due& due : deadlines_.take_due(at)) meet_deadline(due);
  finish_traces(at);
  if (idle_deadline_ && *idle_deadline_ <= at && on_idle_) std::exchange(on_idle_, nullptr)();
  if (at >= next_progress_save_) {
    next_progress_save_ = at + kProgressSavePeriod;
    for (auto& [id, job] : jobs_) {
      if (!job.ended && job.progress.state != JobState::Pending) changed_.insert(id);
    }
    perform({});
  }
  std::optional<TimePoint> next = next_progress_save_;
  const auto consider = [&next](std::optional<TimePoint> other) {
    if (other && (!next || *other < *next)) next = other;
  };
  consider(cluster_.next_deadline());
  consider(deadlines_.next());
  consider(idle_deadline_);
  for (const auto& [id, collection] : traces_) consider(collection.until);
  return next;
}

// Something changed: the timer looks again what is due first.
void Head::wake_timer() {
  std::optional<TimePoint> next = deadlines_.next();
  if (const auto other = cluster_.next_deadline(); other && (!next || *other < *next)) next = other;
  if (next && armed_for_ && *next < *armed_for_) {
    armed_for_.reset();
    wake_.try_send(boost::system::error_code());
  }
}

// ---- views -------------------------------------------------------------------------------------

namespace {

// Of this process, from /proc/self/statm.
std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::int64_t cpu_time_ns() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + std::int64_t{time.tv_usec} * 1'000;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

}  // namespace

wire::Info Head::info() const {
  const gang::MatrixView matrix = cluster_.matrix();
  wire::Info out;
  out.set_cluster(config_.cluster);
  out.set_version(kVersion);
  out.set_quantum_ns(matrix.quantum.count());
  out.set_max_slots(cluster_.config().max_slots);
  out.set_epoch(matrix.epoch.value());
  out.set_cycle_ns(matrix.cycle.count());
  for (const gang::SliceView& slice : matrix.slices) {
    wire::Info::Slice& added = *out.add_slices();
    added.set_slot(slice.slot.value());
    added.set_length_ns(slice.length.count());
    for (const JobId job : slice.jobs) added.add_jobs(job.value());
  }
  out.set_nodes_up(static_cast<std::uint32_t>(links_.connected().size()));
  out.set_nodes_known(static_cast<std::uint32_t>(links_.size()));
  out.set_jobs_active(static_cast<std::uint32_t>(active_));
  out.set_epochs(cluster_.counters().epochs);
  out.set_late_epochs(cluster_.counters().late_epochs);
  out.set_stale_reports(cluster_.counters().stale_reports);
  out.set_head_cpu_ns(cpu_time_ns());
  out.set_head_rss_bytes(resident_bytes());
  out.set_virtual_cluster(config_.virtual_cluster);
  out.set_pid(::getpid());
  out.set_socket(config_.socket);
  out.set_dashboard_url(dashboard_url_);
  out.set_idle_detection(cluster_.config().idle_detection);
  out.set_idle_left(cluster_.counters().idle_left);
  out.set_idle_returned(cluster_.counters().idle_returned);
  out.set_early_yields(cluster_.counters().early_yields);
  out.set_max_weight(config_.limits.max_weight);
  out.set_max_priority(config_.limits.max_priority);
  out.set_max_jobs(config_.limits.max_jobs);
  for (const std::string& queue : config_.limits.queue_names()) out.add_queues(queue);
  return out;
}

std::string Head::summary() const {
  return fmt::format("{}/{} nodes, {} jobs, slice {}", links_.connected().size(), links_.size(),
                     active_, format_duration(cluster_.config().quantum));
}

}  // namespace score::head
