#include "scored/head/clients/overview.hpp"

#include "base/text/hostlist.hpp"
#include "base/text/plain.hpp"
#include "proto/convert/convert.hpp"
#include "proto/convert/words.hpp"
#include "scored/head/clients/pools.hpp"
#include "scored/head/config/version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

namespace score::head {
namespace {

constexpr std::size_t kMostShownJobs = 2'000;

wire::NodeStatus::State to_wire(gang::NodeState state) {
  switch (state) {
    case gang::NodeState::Up:
      return wire::NodeStatus::UP;
    case gang::NodeState::Suspect:
      return wire::NodeStatus::SUSPECT;
    case gang::NodeState::Down:
      return wire::NodeStatus::DOWN;
    case gang::NodeState::Unknown:
      break;
  }
  return wire::NodeStatus::UNKNOWN;
}

const char* name_of_queue(std::uint32_t queue) {
  if (queue == static_cast<std::uint32_t>(base::Queue::Exclusive)) return "exclusive";
  if (queue == static_cast<std::uint32_t>(base::Queue::Urgent)) return "urgent";
  return queue == static_cast<std::uint32_t>(base::Queue::High) ? "high" : "normal";
}

// Returns the activity as scq prints it.
std::string_view activity_of(JobState state, wire::JobStatus::Activity activity) {
  return state == JobState::Running ? proto::word_of(activity) : "";
}

monitor::JobRow row_of(const wire::JobStatus& status) {
  monitor::JobRow row;
  row.job = JobId(status.job());
  row.user = UserId(status.user());
  row.user_name = status.user_name();
  row.name = status.name();
  row.command = status.command();
  const auto state = static_cast<JobState>(status.state());
  row.state = name_of(state);
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
  row.filled = Duration(status.filled_ns());
  row.elapsed = Duration(status.elapsed_ns());
  row.scheduled_limit = Duration(status.scheduled_limit_ns());
  row.wall_limit = Duration(status.wall_limit_ns());
  row.weight = status.weight();
  row.queue = name_of_queue(status.queue());
  row.exit_code = status.exit_code();
  row.reasons.assign(status.reasons().begin(), status.reasons().end());
  row.waits.assign(status.waits().begin(), status.waits().end());
  return row;
}

// Returns the memory of this process, from /proc/self/statm.
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

wire::Info Overview::info() const {
  const gang::MatrixView matrix = head_.runner.cluster().matrix();
  wire::Info out;
  out.set_cluster(head_.config.cluster);
  out.set_version(kVersion);
  out.set_quantum_ns(matrix.quantum.count());
  out.set_epoch(matrix.epoch.value());
  out.set_cycle_ns(matrix.cycle.count());
  for (const gang::SliceView& slice : matrix.slices) {
    wire::Info::Slice& added = *out.add_slices();
    added.set_slot(slice.slot.value());
    added.set_length_ns(slice.length.count());
    for (const JobId job : slice.jobs) added.add_jobs(job.value());
  }
  out.set_nodes_up(static_cast<std::uint32_t>(head_.links.connected().size()));
  out.set_nodes_known(static_cast<std::uint32_t>(head_.links.size()));
  out.set_jobs_active(static_cast<std::uint32_t>(head_.jobs.active()));
  out.set_epochs(head_.runner.cluster().counters().epochs);
  out.set_late_epochs(head_.runner.cluster().counters().late_epochs);
  out.set_stale_reports(head_.runner.cluster().counters().stale_reports);
  out.set_head_cpu_ns(cpu_time_ns());
  out.set_head_rss_bytes(resident_bytes());
  out.set_virtual_cluster(head_.config.virtual_cluster);
  out.set_pid(::getpid());
  out.set_socket(head_.config.socket);
  out.set_dashboard_url(dashboard_url_);
  for (const SettingRule& rule : settings()) {
    wire::Info::Setting& added = *out.add_settings();
    added.set_name(std::string(rule.name));
    added.set_value(
        format_setting(rule, setting_of(head_.runner.cluster().config(), rule.setting)));
  }
  for (const Queue queue : head_.runner.cluster().config().fill_queues) {
    out.add_fill_queues(name_of_queue(static_cast<std::uint32_t>(queue)));
  }
  out.set_idle_left(head_.runner.cluster().counters().idle_left);
  out.set_idle_returned(head_.runner.cluster().counters().idle_returned);
  out.set_early_yields(head_.runner.cluster().counters().early_yields);
  out.set_max_weight(head_.config.limits.max_weight);
  out.set_max_priority(head_.config.limits.max_priority);
  out.set_max_jobs(head_.config.limits.max_jobs);
  for (const std::string& queue : head_.config.limits.queue_names()) out.add_queues(queue);
  if (heads_) {
    for (const wire::HeadState& head : heads_()) *out.add_heads() = head;
  }
  add_pools(head_, out);
  return out;
}

std::optional<bool> Overview::has_current_follower() const {
  if (!heads_) return std::nullopt;
  const auto states = heads_();
  return std::ranges::any_of(
      states, [](const auto& head) { return head.state() == wire::HeadState::CURRENT; });
}

std::string Overview::summary() const {
  std::string text =
      fmt::format("{}/{}, {}, quantum {}", head_.links.connected().size(),
                  counted(head_.links.size(), "node"), counted(head_.jobs.active(), "job"),
                  format_duration(head_.runner.cluster().config().quantum));
  if (!heads_) return text;
  for (const wire::HeadState& head : heads_()) {
    if (!head.in_charge()) text += ", other head " + proto::state_words(head);
  }
  return text;
}

std::string Overview::key_fault_of(const gang::NodeView& view) const {
  if (view.state == gang::NodeState::Up || !fault_of_) return {};
  return fault_of_(head_.links.name(view.id));
}

// A key that is refused explains more than the silence that follows from it.
std::string Overview::reason_of(const gang::NodeView& view) const {
  if (view.drained) return view.drain_reason;
  const std::string fault = key_fault_of(view);
  return fault.empty() ? view.down_reason : fault;
}

wire::NodeList Overview::nodes() const {
  wire::NodeList list;
  for (const NodeId id : head_.runner.cluster().nodes()) {
    const auto view = head_.runner.cluster().node(id);
    if (!view) continue;
    const NodeVitals& vitals = head_.links.link(id).vitals;
    wire::NodeStatus& out = *list.add_nodes();
    out.set_name(head_.links.name(id));
    out.set_state(to_wire(view->state));
    out.set_drained(view->drained);
    const std::string reason = reason_of(*view);
    out.set_reason(reason.empty() ? vitals.network_problem : reason);
    out.set_key_refused(!view->drained && !key_fault_of(*view).empty());
    out.set_cores(view->info.cores);
    out.set_memory_bytes(view->info.memory.value());
    out.set_memory_reserved_bytes(view->memory_reserved.value());
    for (const JobId job : view->jobs) out.add_jobs(job.value());
    for (const auto& feature : view->info.features) out.add_features(feature);
    for (const auto& kind : view->info.generic) *out.add_generic() = proto::to_wire(kind);
    for (const auto& kind : view->generic_used) *out.add_generic_used() = proto::to_wire(kind);
    out.set_reservation(view->reservation);
    out.set_leaf_switch(view->leaf_switch);
    for (const auto& partition : head_.config.partitions.of_node(head_.links.name(id))) {
      out.add_partitions(partition);
    }
    out.set_scratch_bytes(view->info.scratch.value());
    out.set_scratch_reserved_bytes(view->scratch_reserved.value());
    out.set_clock_error_ns(vitals.clock_error_ns);
    *out.mutable_switching() = vitals.switching;
    out.set_rss_bytes(vitals.rss_bytes);
    out.set_cpu_ns(vitals.cpu_ns);
    if (vitals.last_heard != TimePoint()) {
      out.set_last_heard_ns((head_.runner.now() - vitals.last_heard).count());
    }
    out.set_pid(vitals.pid);
    out.set_switches(vitals.switches);
    out.set_late_switches(vitals.late_switches);
    out.set_control_path(vitals.control_path);
    out.set_control_problem(vitals.control_problem);
    out.set_release(vitals.release);
  }
  return list;
}

monitor::ClusterView Overview::view() const {
  monitor::ClusterView out;
  out.name = head_.config.cluster;
  out.version = kVersion;
  out.is_virtual = head_.config.virtual_cluster;
  out.is_private = head_.config.monitor.is_private;
  out.now = head_.runner.now();
  out.wall = wall_now();
  for (const SettingRule& rule : settings()) {
    out.settings.set(rule.setting, setting_of(head_.runner.cluster().config(), rule.setting));
  }
  out.jobs_active = static_cast<std::uint32_t>(head_.jobs.active());
  add_nodes(out);
  add_matrix(out);
  add_jobs(out);
  return out;
}

void Overview::add_nodes(monitor::ClusterView& out) const {
  for (const NodeId id : head_.runner.cluster().nodes()) {
    const auto view = head_.runner.cluster().node(id);
    if (!view) continue;
    const NodeVitals& vitals = head_.links.link(id).vitals;
    monitor::NodeRow row;
    row.name = head_.links.name(id);
    row.state = proto::word_of(to_wire(view->state));
    row.drained = view->drained;
    row.reason = reason_of(*view);
    row.cores = view->info.cores;
    row.memory = view->info.memory;
    row.memory_reserved = view->memory_reserved;
    row.scratch = view->info.scratch;
    row.scratch_reserved = view->scratch_reserved;
    row.jobs = view->jobs;
    row.switches = vitals.switches;
    row.late_switches = vitals.late_switches;
    row.clock_error = Duration(std::max<std::int64_t>(vitals.clock_error_ns, 0));
    if (vitals.last_heard != TimePoint()) row.last_heard = head_.runner.now() - vitals.last_heard;
    row.method = proto::word_of(vitals.switching.method());
    row.daemon_cpu = Duration(vitals.cpu_ns);
    row.daemon_memory = Bytes(vitals.rss_bytes);
    out.nodes_up += view->state == gang::NodeState::Up ? 1 : 0;
    out.nodes_down += view->state == gang::NodeState::Down ? 1 : 0;
    out.nodes_drained += view->drained ? 1 : 0;
    out.nodes.push_back(std::move(row));
  }
}

void Overview::add_matrix(monitor::ClusterView& out) const {
  const gang::MatrixView matrix = head_.runner.cluster().matrix();
  out.quantum = matrix.quantum;
  out.cycle = matrix.cycle;
  out.epoch = matrix.epoch.value();
  std::optional<std::size_t> active;
  if (matrix.start && !matrix.slices.empty()) {
    out.cycle_start = *matrix.start;
    const Duration slice = matrix.cycle / static_cast<std::int64_t>(matrix.slices.size());
    if (head_.runner.now() >= *matrix.start) {
      active =
          static_cast<std::size_t>((head_.runner.now() - *matrix.start) % matrix.cycle / slice) %
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
        const auto view = head_.runner.view(job);
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

void Overview::add_jobs(monitor::ClusterView& out) const {
  for (const auto& [id, job] : head_.jobs.all()) {
    if (job.ended || out.jobs.size() >= kMostShownJobs) continue;
    if (const auto view = head_.runner.view(id))
      out.jobs.push_back(row_of(queries_.status(job, *view)));
  }
  for (const wire::JobStatus* ended : head_.jobs.recently_ended(head_.runner.now())) {
    out.jobs.push_back(row_of(*ended));
  }
  std::sort(out.jobs.begin(), out.jobs.end(),
            [](const auto& a, const auto& b) { return a.job < b.job; });
}

}  // namespace score::head
