// The head's part of a document: nodes, matrix and jobs as they are at this moment.
#include "base/text/hostlist.hpp"
#include "scored/head/config/settings.hpp"
#include "scored/head/head.hpp"

#include <algorithm>

namespace score::head {
namespace {

constexpr std::size_t kMostShownJobs = 2'000;

const char* name_of_node_state(gang::NodeState state) {
  switch (state) {
    case gang::NodeState::Up:
      return "up";
    case gang::NodeState::Suspect:
      return "suspect";
    case gang::NodeState::Down:
      return "down";
    case gang::NodeState::Unknown:
      break;
  }
  return "unknown";
}

std::string shown_name(JobState state) {
  std::string name(name_of(state));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

const char* name_of_queue(std::uint32_t queue) {
  if (queue == static_cast<std::uint32_t>(base::Queue::Exclusive)) return "exclusive";
  return queue == static_cast<std::uint32_t>(base::Queue::High) ? "high" : "normal";
}

// As scq prints it.
const char* activity_of(JobState state, std::uint32_t activity) {
  if (state != JobState::Running) return "";
  switch (static_cast<gang::JobActivity>(activity)) {
    case gang::JobActivity::Idle:
      return "idle";
    case gang::JobActivity::Deadlocked:
      return "deadlocked";
    case gang::JobActivity::Busy:
      break;
  }
  return "busy";
}

monitor::JobRow row_of(const wire::JobStatus& status) {
  monitor::JobRow row;
  row.job = JobId(status.job());
  row.user = UserId(status.user());
  row.user_name = status.user_name();
  row.name = status.name();
  row.command = status.command();
  const auto state = static_cast<JobState>(status.state());
  row.state = shown_name(state);
  row.final = is_final(state);
  row.activity = activity_of(state, status.activity());
  row.idle = status.background();
  row.nodes = static_cast<std::uint32_t>(status.nodes_size());
  row.tasks = status.tasks();
  for (const auto tasks : status.tasks_on_node()) {
    row.most_on_node = std::max(row.most_on_node, tasks);
  }
  const std::vector<std::string> names(status.nodes().begin(), status.nodes().end());
  row.node_list = compress_hostlist(names);
  if (status.slot() >= 0) row.slot = SlotIndex(static_cast<std::uint32_t>(status.slot()));
  row.share = status.share();
  row.scheduled = Duration(status.scheduled_ns());
  row.elapsed = Duration(status.elapsed_ns());
  row.scheduled_limit = Duration(status.scheduled_limit_ns());
  row.wall_limit = Duration(status.wall_limit_ns());
  row.weight = status.weight();
  row.queue = name_of_queue(status.queue());
  row.exit_code = status.exit_code();
  row.reasons.assign(status.reasons().begin(), status.reasons().end());
  return row;
}

}  // namespace

void Head::show_nodes(monitor::ClusterView& out) const {
  for (const NodeId id : cluster_.nodes()) {
    const auto view = cluster_.node(id);
    if (!view) continue;
    const NodeVitals& vitals = links_.link(id).vitals;
    monitor::NodeRow row;
    row.name = links_.name(id);
    row.state = name_of_node_state(view->state);
    row.drained = view->drained;
    row.reason = view->drained ? view->drain_reason : view->down_reason;
    row.cores = view->info.cores;
    row.memory = view->info.memory;
    row.memory_reserved = view->memory_reserved;
    row.jobs = view->jobs;
    row.switches = vitals.switches;
    row.late_switches = vitals.late_switches;
    row.clock_error = Duration(std::max<std::int64_t>(vitals.clock_error_ns, 0));
    if (vitals.last_heard != TimePoint()) row.last_heard = now() - vitals.last_heard;
    row.method = vitals.switch_method;
    row.daemon_cpu = Duration(vitals.cpu_ns);
    row.daemon_memory = Bytes(vitals.rss_bytes);
    out.nodes_up += view->state == gang::NodeState::Up ? 1 : 0;
    out.nodes_down += view->state == gang::NodeState::Down ? 1 : 0;
    out.nodes_drained += view->drained ? 1 : 0;
    out.nodes.push_back(std::move(row));
  }
}

void Head::show_matrix(monitor::ClusterView& out) const {
  const gang::MatrixView matrix = cluster_.matrix();
  out.quantum = matrix.quantum;
  out.cycle = matrix.cycle;
  out.epoch = matrix.epoch.value();
  std::optional<std::size_t> active;
  if (matrix.start && !matrix.slices.empty()) {
    out.cycle_start = *matrix.start;
    const Duration slice = matrix.cycle / static_cast<std::int64_t>(matrix.slices.size());
    if (now() >= *matrix.start) {
      active = static_cast<std::size_t>((now() - *matrix.start) % matrix.cycle / slice) %
               matrix.slices.size();
    }
  }
  for (std::size_t i = 0; i < matrix.slices.size(); ++i) {
    const gang::SliceView& slice = matrix.slices[i];
    out.order.push_back(slice.slot);
    auto row = std::find_if(out.rows.begin(), out.rows.end(),
                            [&](const auto& known) { return known.slot == slice.slot; });
    if (row == out.rows.end()) {
      row = out.rows.insert(row, {slice.slot, false, {}});
      row->cells.resize(out.nodes.size());
      for (const JobId job : slice.jobs) {
        const auto view = cluster_.job(job, now());
        if (!view) continue;
        for (const NodeId node : view->nodes) {
          if (node.value() < row->cells.size()) row->cells[node.value()].push_back(job);
        }
      }
    }
    row->active = row->active || i == active;
  }
  std::sort(out.rows.begin(), out.rows.end(),
            [](const auto& a, const auto& b) { return a.slot < b.slot; });
}

void Head::show_jobs(monitor::ClusterView& out) {
  for (const auto& [id, job] : jobs_) {
    if (job.ended || out.jobs.size() >= kMostShownJobs) continue;
    if (const auto looked = view(id)) out.jobs.push_back(row_of(status_of(job, *looked)));
  }
  for (const auto& [at, status] : lately_ended_) {
    if (now() - at < kShownAfterEnd) out.jobs.push_back(row_of(status));
  }
  std::sort(out.jobs.begin(), out.jobs.end(),
            [](const auto& a, const auto& b) { return a.job < b.job; });
}

std::span<const NodeId> Head::nodes_of(AttemptId attempt) const {
  const auto job = jobs_.find(job_of(attempt));
  if (job == jobs_.end() || job->second.progress.placement.attempt != attempt) return {};
  return job->second.nodes;
}

monitor::ClusterView Head::show() {
  monitor::ClusterView out;
  out.name = config_.cluster;
  out.version = kVersion;
  out.is_virtual = config_.virtual_cluster;
  out.is_private = config_.monitor.is_private;
  out.now = now();
  out.wall = wall_now();
  out.slots = cluster_.config().max_slots;
  out.jobs_active = static_cast<std::uint32_t>(active_);
  show_nodes(out);
  show_matrix(out);
  show_jobs(out);
  return out;
}

// ---- what others may know (private)
// ---------------------------------------------------------------

bool Head::may_know(const Peer& peer, UserId user) const {
  return !config_.monitor.is_private || peer.role != proto::Role::OtherUser || peer.user == user;
}

void Head::hide_from(const Peer& peer, wire::JobStatus& status) const {
  if (may_know(peer, UserId(status.user()))) return;
  status.set_user(kHiddenUser);
  status.clear_user_name();
  status.clear_name();
  status.clear_command();
  status.clear_directory();
  status.clear_events();
  if (is_final(static_cast<JobState>(status.state())))
    status.clear_reasons();  // they name programs
}

// ---- events -------------------------------------------------------------------------------------

void Head::tell(monitor::EventKind kind, std::string text, EventAbout about) {
  if (observer_ == nullptr) return;
  monitor::Event event;
  event.at = now();
  event.wall = wall_now();
  event.kind = kind;
  event.text = std::move(text);
  event.public_text = std::move(about.public_text);
  event.job = about.job;
  event.node = about.node;
  observer_->happened(std::move(event));
}

void Head::tell_job(const Job& job, std::string_view what, std::string_view why) {
  const std::string bare = fmt::format("job {} {}", job.info.id, what);
  std::string text = fmt::format("job {} ({} of {}) {}", job.info.id, job.info.name,
                                 users_.name(job.info.user, now()), what);
  if (!why.empty()) text += fmt::format(": {}", why);
  EventAbout about;
  about.job = job.info.id;
  about.public_text = bare;
  tell(monitor::EventKind::Job, std::move(text), std::move(about));
}

void Head::tell_audit(const Peer& peer, std::string_view action, std::string_view value,
                      std::optional<JobId> job) {
  EventAbout about;
  about.job = job;
  about.public_text = fmt::format("{} {}", action, job ? fmt::format("job {}", *job) : "");
  std::string text = fmt::format("{}: {}", peer.name, action);
  if (job) text += fmt::format(" job {}", *job);
  if (!value.empty()) text += fmt::format(" {}", value);
  tell(monitor::EventKind::Admin, std::move(text), std::move(about));
}

}  // namespace score::head
