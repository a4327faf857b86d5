// Each section has one function, in the order of docs/reference/stream.md. Rows of processes and
// runs are arrays, because with 1,024 tasks field names would be most of the document.
#include "monitor/model/document.hpp"

#include "base/model/model.hpp"
#include "base/text/json_writer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace score::monitor {

namespace {

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double seconds(TimePoint at) {
  return seconds(at.time_since_epoch());
}

double seconds(WallTime at) {
  return seconds(at.time_since_epoch());
}

std::optional<double> seconds(std::optional<Duration> duration) {
  return duration ? std::optional(seconds(*duration)) : std::nullopt;
}

// Four digits are precise enough for a rate.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  if (value >= 1'000) return std::round(value);
  return std::round(value * 1e4) / 1e4;
}

std::optional<double> rounded(std::optional<double> value) {
  return value ? std::optional(rounded(*value)) : std::nullopt;
}

template <class Ids>
void write_ids(JsonWriter& json, const Ids& ids) {
  json.begin_array();
  for (const auto& id : ids) json.value(id.value());
  json.end_array();
}

class Writer {
 public:
  Writer(const ClusterView& view, const ClusterMeter& meter, const DocumentOptions& options)
      : view_(view), meter_(meter), options_(options) {}

  std::string write();

 private:
  void write_cluster();
  void write_overhead(const ClusterMeter::Overhead& overhead);
  void write_nodes();
  void write_node(const NodeRow& node, NodeId id);
  void write_scratch(const NodeRow& node, NodeId id);
  void write_matrix();
  void write_slices();
  void write_run(std::uint32_t node, const JobRun& run);
  void write_jobs();
  void write_job(const JobRow& job);
  void write_processes();
  void write_task(std::uint32_t node, const TaskLoad& task);
  void write_switches();
  void write_quantiles(const Quantiles& of, bool with_count);
  void write_traffic();
  void write_events();
  void write_peers();

  [[nodiscard]] bool may_know(UserId user) const {
    return !view_.is_private || options_.sight.is_operator || options_.sight.user == user;
  }

  [[nodiscard]] bool may_know(const std::optional<JobId>& job) const;

  JsonWriter& at(TimePoint when) { return json_.fixed(seconds(when), 6); }

  void at(const char* name, TimePoint when) {
    json_.key(name);
    at(when);
  }

  // Texts about a job that the viewer may not see are null.
  JsonWriter& hidden(const char* name, const std::string& text, bool is_visible) {
    json_.key(name);
    return is_visible ? json_.value(text) : json_.null();
  }

  const ClusterView& view_;
  const ClusterMeter& meter_;
  const DocumentOptions& options_;
  JsonWriter json_{JsonWriter::Layout::Line};
};

std::string Writer::write() {
  const Filter& filter = options_.filter;
  json_.reserve(4'096 + view_.nodes.size() * 1'024);
  json_.begin_object().field("schema", "scored.stream/1").field("seq", options_.sequence);
  json_.field("head", view_.head).key("time_unix_s").fixed(seconds(view_.wall), 3);
  at("time_s", view_.now);
  write_cluster();
  if (filter.has(Part::Nodes)) write_nodes();
  if (filter.has(Part::Matrix)) write_matrix();
  if (filter.has(Part::Slices)) write_slices();
  if (filter.has(Part::Jobs)) write_jobs();
  if (filter.has(Part::Processes)) write_processes();
  if (filter.has(Part::Switches)) write_switches();
  if (filter.has(Part::Traffic)) write_traffic();
  if (filter.has(Part::Events)) write_events();
  if (filter.has(Part::Peers)) write_peers();
  json_.end_object();
  return json_.take();
}

void Writer::write_cluster() {
  json_.key("cluster").begin_object();
  json_.field("name", view_.name).field("version", view_.version);
  json_.field("virtual", view_.is_virtual).field("quantum_s", seconds(view_.quantum));
  json_.field("slots", view_.settings[Setting::Slots]).field("cycle_s", seconds(view_.cycle));
  json_.field("epoch", view_.epoch).field("nodes_up", view_.nodes_up);
  json_.field("nodes_down", view_.nodes_down).field("nodes_known", view_.nodes.size());
  json_.field("nodes_drained", view_.nodes_drained).field("jobs_active", view_.jobs_active);
  json_.field("switches_per_s", rounded(meter_.switches_per_second()));
  write_overhead(meter_.overhead());
  json_.field("sample_period_s", seconds(view_.sample_period));
  json_.field("sample_delay_s", seconds(view_.sample_delay));
  json_.field("viewers", view_.viewers).key("settings").begin_array();
  for (const SettingRule& rule : settings()) {
    json_.begin_object().field("name", rule.name).field("range", range_of(rule));
    json_.field("value", format_setting(rule, view_.settings[rule.setting]));
    json_.field("purpose", rule.purpose).end_object();
  }
  json_.end_array().end_object();
}

// The parts are not rounded, so that they add up to the whole.
void Writer::write_overhead(const ClusterMeter::Overhead& overhead) {
  const auto share = overhead.share();
  json_.field("overhead", share).key("overhead_parts");
  if (!share) {
    json_.null();
    return;
  }
  json_.begin_object();
  for (const auto& [name, part] : kOverheadParts) {
    json_.field(name, share_of(overhead.spent.*part, overhead.busy));
  }
  json_.end_object();
}

void Writer::write_nodes() {
  json_.key("nodes").begin_array();
  for (std::uint32_t i = 0; i < view_.nodes.size(); ++i) write_node(view_.nodes[i], NodeId(i));
  json_.end_array();
}

void Writer::write_node(const NodeRow& node, NodeId id) {
  const NodeLoad* load = meter_.load(id);
  json_.begin_object().field("name", node.name).field("state", node.state);
  json_.field("drained", node.drained).field("reason", node.reason).field("cores", node.cores);
  json_.field("memory_bytes", node.memory.value());
  json_.field("memory_reserved_bytes", node.memory_reserved.value()).key("jobs");
  write_ids(json_, node.jobs);
  json_.field("user", load != nullptr ? std::optional(rounded(load->user)) : std::nullopt);
  json_.field("system", load != nullptr ? std::optional(rounded(load->system)) : std::nullopt);
  json_.field("filled", load != nullptr ? std::optional(rounded(load->filled)) : std::nullopt);
  const NodeTotals* totals = meter_.totals(id);  // while it is watched, newer than the heartbeat
  json_.field("switches", std::max(node.switches, totals != nullptr ? totals->switches : 0));
  json_.field("late_switches", std::max(node.late_switches, totals != nullptr ? totals->late : 0));
  write_overhead(meter_.overhead(id));
  json_.field("clock_error_s", seconds(node.clock_error));
  json_.field("last_heard_s", seconds(node.last_heard)).field("method", node.method);
  json_.field("daemon_cpu_s", seconds(node.daemon_cpu));
  json_.field("daemon_rss_bytes", node.daemon_memory.value());
  write_scratch(node, id);
  json_.end_object();
}

// Writes null if the node offers no scratch. The figures of its servers are null while they are
// unknown.
void Writer::write_scratch(const NodeRow& node, NodeId id) {
  json_.key("scratch");
  if (node.scratch == Bytes(0)) {
    json_.null();
    return;
  }
  const ScratchMeter* meter = meter_.scratch(id);
  const auto volumes = meter != nullptr ? meter->volumes() : std::nullopt;
  json_.begin_object().field("capacity_bytes", node.scratch.value());
  json_.field("reserved_bytes", node.scratch_reserved.value()).key("volumes");
  if (!volumes) {
    json_.null().end_object();
    return;
  }
  json_.begin_array();
  for (const VolumeLoad& load : *volumes) {
    json_.begin_object().field("job", base::job_of(load.attempt).value());
    json_.field("capacity_bytes", load.capacity.value()).field("used_bytes", load.used.value());
    json_.field("read_bytes_per_s", rounded(load.read_rate));
    json_.field("written_bytes_per_s", rounded(load.write_rate));
    json_.field("requests_per_s", rounded(load.request_rate)).field("queue", load.queue);
    json_.field("restarts", load.restarts).field("fallbacks", load.fallbacks);
    json_.field("down", load.is_down).end_object();
  }
  json_.end_array().end_object();
}

void Writer::write_matrix() {
  json_.key("matrix").begin_object().key("rows").begin_array();
  for (const MatrixRow& row : view_.rows) {
    json_.begin_object().field("slot", row.slot.value()).field("active", row.active);
    json_.key("cells").begin_array();
    for (const auto& cell : row.cells) write_ids(json_, cell);
    json_.end_array().end_object();
  }
  json_.end_array().key("order");
  write_ids(json_, view_.order);
  json_.key("start_s");
  view_.cycle_start ? at(*view_.cycle_start) : json_.null();
  json_.end_object();
}

void Writer::write_slices() {
  const TimePoint to = view_.now - view_.sample_delay;
  const TimePoint from = to - options_.slices;
  json_.key("slices").begin_object();
  at("from_s", from);
  at("to_s", to);
  json_.key("runs").begin_array();
  for (std::uint32_t node = 0; node < view_.nodes.size(); ++node) {
    for (const JobRun& run : meter_.runs(NodeId(node), from, to)) write_run(node, run);
  }
  json_.end_array().key("fills").begin_array();
  for (std::uint32_t node = 0; node < view_.nodes.size(); ++node) {
    for (const JobRun& run : meter_.fills(NodeId(node), from, to)) write_run(node, run);
  }
  json_.end_array().end_object();
}

void Writer::write_run(std::uint32_t node, const JobRun& run) {
  if (options_.filter.job && run.job != *options_.filter.job) return;
  json_.begin_array().value(node).value(run.job.value());
  at(run.start);
  run.end ? at(*run.end) : json_.null();
  json_.end_array();
}

void Writer::write_jobs() {
  json_.key("jobs").begin_array();
  for (const JobRow& job : view_.jobs) {
    if (options_.filter.job && job.job != *options_.filter.job) continue;
    if (!options_.filter.user.empty() &&
        (job.user_name != options_.filter.user || !may_know(job.user))) {
      continue;
    }
    write_job(job);
  }
  json_.end_array();
}

void Writer::write_job(const JobRow& job) {
  const bool is_visible = may_know(job.user);
  json_.begin_object().field("job", job.job.value());
  hidden("user", job.user_name, is_visible);
  hidden("name", job.name, is_visible);
  hidden("command", job.command, is_visible);
  json_.field("own", options_.sight.user == job.user).field("state", job.state);
  json_.field("final", job.final)
      .field("activity", job.activity)
      .field("idle", job.idle)
      .field("nodes", job.nodes)
      .field("tasks", job.tasks);
  json_.field("ppn", job.most_on_node).field("node_list", job.node_list).key("slot");
  job.slot ? json_.value(job.slot->value()) : json_.null();
  json_.field("share", rounded(job.share)).field("scheduled_s", seconds(job.scheduled));
  json_.field("filled_s", seconds(job.filled));
  json_.field("elapsed_s", seconds(job.elapsed));
  json_.field("scheduled_limit_s", seconds(job.scheduled_limit));
  json_.field("wall_limit_s", seconds(job.wall_limit)).field("weight", job.weight);
  json_.field("queue", job.queue).field("exit_code", job.exit_code);
  // The reasons may name people ("cancelled by alice").
  json_.list("reasons", is_visible ? job.reasons : std::vector<std::string>());
  json_.list("waits", is_visible ? job.waits : std::vector<std::string>()).end_object();
}

constexpr std::array<const char*, 18> kProcessColumns = {"node",
                                                         "job",
                                                         "rank",
                                                         "pid",
                                                         "state",
                                                         "user",
                                                         "system",
                                                         "pm",
                                                         "scheduled",
                                                         "memory_bytes",
                                                         "switches_per_s",
                                                         "sent_messages_per_s",
                                                         "received_messages_per_s",
                                                         "sent_bytes_per_s",
                                                         "received_bytes_per_s",
                                                         "processes",
                                                         "waited",
                                                         "filled"};

void Writer::write_processes() {
  json_.key("processes").begin_object().list("columns", kProcessColumns).key("rows").begin_array();
  for (std::uint32_t node = 0; node < view_.nodes.size(); ++node) {
    const NodeLoad* load = meter_.load(NodeId(node));
    if (load == nullptr) continue;
    for (const TaskLoad& task : load->tasks) write_task(node, task);
  }
  json_.end_array().end_object();
}

void Writer::write_task(std::uint32_t node, const TaskLoad& task) {
  const JobId job = base::job_of(task.attempt);
  if (options_.filter.job && job != *options_.filter.job) return;
  json_.begin_array().value(node).value(job.value()).value(task.rank.value()).value(task.pid);
  json_.value(name_of(task.state)).value(rounded(task.user)).value(rounded(task.system));
  json_.value(rounded(task.pm_wait)).value(rounded(task.scheduled)).value(task.memory.value());
  json_.value(rounded(task.switches));
  const auto rate = [&](double TrafficRate::*which) {
    task.traffic ? json_.value(rounded((*task.traffic).*which)) : json_.null();
  };
  rate(&TrafficRate::sent_messages);
  rate(&TrafficRate::received_messages);
  rate(&TrafficRate::sent_bytes);
  rate(&TrafficRate::received_bytes);
  json_.value(task.processes).value(rounded(task.waited)).value(rounded(task.filled)).end_array();
}

void Writer::write_quantiles(const Quantiles& of, bool with_count) {
  if (of.count == 0) {
    json_.null();
    return;
  }
  json_.begin_object().field("p50_s", seconds(of.p50)).field("p95_s", seconds(of.p95));
  json_.field("max_s", seconds(of.max));
  if (with_count) json_.field("count", of.count);
  json_.end_object();
}

void Writer::write_switches() {
  const TimePoint to = view_.now - view_.sample_delay;
  const auto summary = meter_.switches().summary(to - options_.window, to);
  json_.key("switches").begin_object().field("window_s", seconds(options_.window));
  json_.field("count", summary.count).key("phases").begin_object();
  for (std::size_t i = 0; i < kSwitchPhases; ++i) {
    json_.key(name_of(static_cast<SwitchPhase>(i)));
    write_quantiles(summary.phases[i], false);
  }
  json_.end_object().key("skew");
  write_quantiles(summary.skew, true);
  json_.field("mean_overhead_s", seconds(summary.mean_overhead));
  json_.field("mean_lost_s", seconds(summary.mean_overhead));
  std::uint64_t late = 0;
  for (const NodeRow& node : view_.nodes) late += node.late_switches;
  json_.field("late_total", late).key("last_late");
  const auto last = meter_.switches().last_late();
  if (last) {
    json_.begin_object().field("id", last->id).field("node", last->node.value());
    at("at_s", last->due);
    json_.field("late_s", seconds(last->late)).field("slice_s", seconds(last->slice));
    json_.end_object();
  } else {
    json_.null();
  }
  json_.end_object();
}

void Writer::write_traffic() {
  json_.key("traffic").begin_array();
  for (std::uint32_t node = 0; node < view_.nodes.size(); ++node) {
    const NodeLoad* load = meter_.load(NodeId(node));
    if (load == nullptr || !load->traffic) {
      json_.null();
      continue;
    }
    const TrafficRate& rate = *load->traffic;
    json_.begin_array().value(rounded(rate.sent_bytes)).value(rounded(rate.received_bytes));
    json_.value(rounded(rate.sent_messages)).value(rounded(rate.received_messages)).end_array();
  }
  json_.end_array();
}

// The job of an event may be gone from the list. Then only operators see more than its number.
bool Writer::may_know(const std::optional<JobId>& job) const {
  if (!view_.is_private || options_.sight.is_operator || !job) return true;
  for (const JobRow& row : view_.jobs) {
    if (row.job == *job) return may_know(row.user);
  }
  return false;
}

void Writer::write_events() {
  json_.key("events").begin_array();
  if (view_.events != nullptr) {
    for (const Event& event : *view_.events) {
      json_.begin_object().field("id", event.id);
      json_.key("time_unix_s").fixed(seconds(event.wall), 3);
      at("at_s", event.at);
      json_.field("kind", name_of(event.kind));
      const bool is_plain = event.public_text.empty() || may_know(event.job);
      json_.field("text", is_plain ? event.text : event.public_text).key("job");
      event.job ? json_.value(event.job->value()) : json_.null();
      json_.key("node");
      event.node ? json_.value(event.node->value()) : json_.null();
      json_.end_object();
    }
  }
  json_.end_array();
}

void Writer::write_peers() {
  json_.key("peers").begin_object().field("nodes_per_cell", meter_.peers().nodes_per_cell());
  json_.key("cells").begin_array();
  const TimePoint to = view_.now - view_.sample_delay;
  for (const auto& cell : meter_.peers().cells(to, options_.filter.job)) {
    json_.begin_array().value(cell.from).value(cell.to).value(rounded(cell.frames)).end_array();
  }
  json_.end_array().end_object();
}

}  // namespace

const char* name_of(EventKind kind) {
  constexpr std::array<const char*, 5> kNames = {"job", "node", "admin", "late", "head"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool has_all_loads(const ClusterView& view, const ClusterMeter& meter) {
  std::map<JobId, std::size_t> measured;
  for (std::uint32_t node = 0; node < view.nodes.size(); ++node) {
    const NodeLoad* load = meter.load(NodeId(node));
    if (load == nullptr) continue;
    for (const TaskLoad& task : load->tasks) {
      if (task.has_rates) ++measured[base::job_of(task.attempt)];
    }
  }
  return std::ranges::all_of(view.jobs, [&](const JobRow& job) {
    return job.state != "running" || job.idle || measured[job.job] >= job.tasks;
  });
}

std::string write_document(const ClusterView& view, const ClusterMeter& meter,
                           const DocumentOptions& options) {
  return Writer(view, meter, options).write();
}

}  // namespace score::monitor
