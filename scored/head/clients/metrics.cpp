// Job ids, ranks and users are not labels, because their number is unlimited. Nodes, accounts,
// partitions and licenses are labels, because the configuration names all of them.
#include "scored/head/clients/metrics.hpp"

#include "monitor/metrics/exporter.hpp"
#include "scored/control/metrics.hpp"

#include <map>

namespace score::head {
namespace {

using monitor::Exporter;
using monitor::NodeTotals;
using monitor::Series;

void export_cluster(Exporter& out, const monitor::ClusterView& view) {
  out.gauge("scored_build_info", "Always 1; the labels name the version and the cluster.")
      .value(1, {{"version", view.version}, {"cluster", view.name}});
  out.gauge("scored_time_slice_seconds", "Length of a slice.").value(view.quantum);
  out.gauge("scored_slots", "Most rows of the gang matrix.")
      .value(static_cast<double>(view.settings[Setting::Slots]));
  out.gauge("scored_slots_used", "Rows of the gang matrix with a job.")
      .value(static_cast<double>(view.rows.size()));
  std::map<std::string, int> nodes = {{"up", 0}, {"suspect", 0}, {"down", 0}, {"unknown", 0}};
  for (const auto& node : view.nodes) ++nodes[node.state];
  auto by_node_state = out.gauge("scored_nodes", "Nodes by state.");
  for (const auto& [state, count] : nodes) by_node_state.value(count, {{"state", state}});
  out.gauge("scored_nodes_drained", "Nodes that take no new jobs.")
      .value(static_cast<double>(view.nodes_drained));
  std::map<std::string, int> jobs = {
      {"pending", 0}, {"launching", 0}, {"running", 0}, {"suspended", 0}, {"completing", 0}};
  for (const auto& job : view.jobs) {
    if (!job.final) ++jobs[job.state];
  }
  double deadlocked = 0;
  for (const auto& job : view.jobs) deadlocked += job.activity == "deadlocked" ? 1 : 0;
  out.gauge("scored_jobs_deadlocked", "Running jobs of which no task can send.").value(deadlocked);
  auto by_job_state = out.gauge("scored_jobs", "Jobs that have not ended, by state.");
  for (const auto& [state, count] : jobs) by_job_state.value(count, {{"state", state}});
}

void export_nodes(Exporter& out, const monitor::ClusterView& view,
                  const monitor::ClusterMeter& meter) {
  const double wall = std::chrono::duration<double>(view.wall.time_since_epoch()).count();
  auto heard = out.gauge("scored_node_last_heartbeat_timestamp_seconds",
                         "Time of the last message from a node.");
  for (const auto& node : view.nodes) {
    if (!node.last_heard) continue;
    heard.value(wall - std::chrono::duration<double>(*node.last_heard).count(),
                {{"node", node.name}});
  }
  auto errors = out.gauge("scored_node_clock_error_seconds", "Bound of a node's clock error.");
  for (const auto& node : view.nodes) errors.value(node.clock_error, {{"node", node.name}});
  auto cpu = out.counter("scored_node_cpu_seconds_total", "CPU time of the jobs of a node.");
  for (std::uint32_t i = 0; i < view.nodes.size(); ++i) {
    const NodeTotals* totals = meter.totals(NodeId(i));
    if (totals == nullptr) continue;
    cpu.value(totals->user, {{"node", view.nodes[i].name}, {"mode", "user"}});
    cpu.value(totals->system, {{"node", view.nodes[i].name}, {"mode", "system"}});
  }
  auto filled =
      out.counter("score_job_fill_seconds_total", "CPU time that jobs used at idle priority.");
  for (std::uint32_t i = 0; i < view.nodes.size(); ++i) {
    const NodeTotals* totals = meter.totals(NodeId(i));
    if (totals != nullptr) filled.value(totals->filled, {{"node", view.nodes[i].name}});
  }
  auto traffic = out.counter("scored_comm_bytes_total", "Bytes through PM, by node.");
  for (std::uint32_t i = 0; i < view.nodes.size(); ++i) {
    const NodeTotals* totals = meter.totals(NodeId(i));
    if (totals == nullptr) continue;
    const auto bytes = [](std::uint64_t count) { return static_cast<double>(count); };
    traffic.value(bytes(totals->traffic.sent_bytes),
                  {{"node", view.nodes[i].name}, {"direction", "sent"}});
    traffic.value(bytes(totals->traffic.received_bytes),
                  {{"node", view.nodes[i].name}, {"direction", "received"}});
  }
}

void export_accounts(Exporter& out, const std::vector<FairShares::AccountUse>& accounts) {
  const auto each = [&](Series<prometheus::Gauge> family, const auto& value_of) {
    for (const auto& account : accounts)
      family.value(value_of(account), {{"account", account.name}});
  };
  const auto add_count = [&](Series<prometheus::Gauge>& family, const auto& account,
                             const char* kind, auto value) {
    family.value(static_cast<double>(value), {{"account", account.name}, {"kind", kind}});
  };
  each(
      out.gauge("scored_account_share_ratio", "Part of the whole that the account is entitled to."),
      [](const auto& account) { return account.shares.share; });
  each(out.gauge("scored_account_used_ratio", "Part of all use, decayed, that is the account's."),
       [](const auto& account) { return account.shares.used; });
  each(out.gauge("scored_account_fair_share_factor", "2^(-used/share): 0.5 is used as entitled."),
       [](const auto& account) { return account.shares.factor; });
  each(out.gauge("scored_account_used_core_seconds", "Cores x scheduled time, decayed."),
       [](const auto& account) { return account.core_seconds; });
  auto has = out.gauge("scored_account_has", "What the account has now, by kind.");
  for (const auto& account : accounts) {
    add_count(has, account, "jobs", account.jobs);
    add_count(has, account, "running_jobs", account.placed.jobs);
    add_count(has, account, "nodes", account.placed.nodes);
    add_count(has, account, "memory_bytes", account.placed.memory.value());
  }
  auto most =
      out.gauge("scored_account_limit", "Limits of the account, by kind, where it has one.");
  for (const auto& account : accounts) {
    const auto add_limit = [&](const char* kind, auto value) {
      if (value > 0) add_count(most, account, kind, value);
    };
    add_limit("jobs", account.max_jobs);
    add_limit("running_jobs", account.limits.max_running_jobs);
    add_limit("nodes", account.limits.max_nodes);
    add_limit("memory_bytes", account.limits.max_memory.value());
    add_limit("scheduled_hours", account.limits.max_scheduled_hours);
  }
}

void export_pools(Exporter& out, const Pools& pools) {
  auto total = out.gauge("scored_license_total", "Licenses of the cluster.");
  auto used = out.gauge("scored_license_used", "Licenses that jobs hold.");
  auto wanted = out.gauge("scored_license_waiting_jobs", "Waiting jobs that ask for the license.");
  for (const LicenseCount& one : pools.licenses) {
    total.value(one.total, {{"license", one.name}});
    used.value(one.used, {{"license", one.name}});
    wanted.value(one.jobs_waiting, {{"license", one.name}});
  }
  auto jobs = out.gauge("scored_partition_jobs", "Jobs that have not ended, by partition.");
  auto nodes = out.gauge("scored_partition_nodes_up", "Nodes of the partition that take jobs.");
  for (const PartitionCount& one : pools.partitions) {
    jobs.value(one.jobs_running, {{"partition", one.name}, {"state", "placed"}});
    jobs.value(one.jobs_waiting, {{"partition", one.name}, {"state", "pending"}});
    nodes.value(one.nodes_up, {{"partition", one.name}});
  }
}

// Scratch is exported by node, because jobs come and go.
void export_scratch(Exporter& out, const monitor::ClusterView& view,
                    const monitor::ClusterMeter& meter) {
  auto capacity = out.gauge("scored_scratch_capacity_bytes", "Scratch that a node offers.");
  auto reserved = out.gauge("scored_scratch_reserved_bytes", "Scratch of a node that jobs have.");
  auto used = out.gauge("scored_scratch_used_bytes", "Scratch of a node that holds data.");
  auto queue = out.gauge("scored_scratch_queue", "Requests that servers have not answered.");
  auto down = out.gauge("scored_scratch_servers_down", "Servers that do not answer.");
  auto bytes = out.counter("scored_scratch_bytes_total", "Bytes through a node's servers.");
  auto fallbacks =
      out.counter("scored_scratch_fallbacks_total", "Connections that wanted PM and use TCP.");
  for (std::uint32_t i = 0; i < view.nodes.size(); ++i) {
    const auto& node = view.nodes[i];
    if (node.scratch == Bytes(0)) continue;
    capacity.value(static_cast<double>(node.scratch.value()), {{"node", node.name}});
    reserved.value(static_cast<double>(node.scratch_reserved.value()), {{"node", node.name}});
    const monitor::ScratchMeter* scratch = meter.scratch(NodeId(i));
    const auto volumes = scratch != nullptr ? scratch->volumes() : std::nullopt;
    if (!volumes) continue;
    double sum = 0, waiting = 0, dead = 0;
    for (const auto& volume : *volumes) {
      sum += static_cast<double>(volume.used.value());
      waiting += static_cast<double>(volume.queue);
      dead += volume.is_down ? 1 : 0;
    }
    used.value(sum, {{"node", node.name}});
    queue.value(waiting, {{"node", node.name}});
    down.value(dead, {{"node", node.name}});
    bytes.value(static_cast<double>(scratch->read_bytes()),
                {{"node", node.name}, {"direction", "read"}});
    bytes.value(static_cast<double>(scratch->written_bytes()),
                {{"node", node.name}, {"direction", "written"}});
    fallbacks.value(static_cast<double>(scratch->fallbacks()), {{"node", node.name}});
  }
}

// Only the sum and the count of the request times are kept.
void export_requests(Exporter& out, const monitor::HttpServer::Counts& requests) {
  auto answered =
      out.counter("scored_api_requests_total", "Requests of the web server that were answered.");
  for (const auto& [key, count] : requests) {
    answered.value(static_cast<double>(count.requests),
                   {{"method", key.first}, {"code", std::to_string(key.second)}});
  }
  auto times = out.histogram("scored_api_request_duration_seconds", "Time to answer a request.");
  for (const auto& [key, count] : requests) {
    times.distribution(count.times, {{"method", key.first}, {"code", std::to_string(key.second)}});
  }
}

void export_notices(Exporter& out, const std::map<NoticeChannel, NoticeCounts>& notices) {
  auto all = out.counter("scored_notices_total", "Mails and webhook notices, by result.");
  for (const auto channel : {NoticeChannel::Mail, NoticeChannel::Webhook}) {
    const auto found = notices.find(channel);
    const NoticeCounts counts = found == notices.end() ? NoticeCounts() : found->second;
    const auto add = [&](const char* result, std::uint64_t count) {
      all.value(
          static_cast<double>(count),
          {{"channel", channel == NoticeChannel::Mail ? "mail" : "webhook"}, {"result", result}});
    };
    add("sent", counts.sent);
    add("failed", counts.failed);
    add("dropped", counts.dropped);
  }
}

void export_documents(Exporter& out, const monitor::Hub::Counters& documents, std::size_t viewers) {
  out.gauge("scored_viewers", "Viewers of the stream now.").value(static_cast<double>(viewers));
  out.counter("scored_documents_encoded_total", "Documents made, however many watched.")
      .value(static_cast<double>(documents.encoded));
  out.counter("scored_documents_delivered_total", "Documents given to viewers.")
      .value(static_cast<double>(documents.delivered));
  out.counter("scored_documents_skipped_total", "Documents that a slow viewer missed.")
      .value(static_cast<double>(documents.skipped));
}

}  // namespace

std::string metrics_text(const MetricsInput& input) {
  Exporter out;
  export_cluster(out, input.view);
  monitor::export_node(out, input.meter.sum());
  out.histogram("scored_gang_switch_skew_seconds", "Last node minus first of one boundary.")
      .distribution(input.meter.switches().skews());
  out.histogram("scored_job_wait_seconds", "From submission to start.")
      .distribution(input.job_waits);
  out.counter("scored_jobs_started_total", "Jobs that were started.")
      .value(static_cast<double>(input.counters.jobs_started));
  auto ended = out.counter("scored_jobs_ended_total", "Jobs that ended, by final state.");
  for (std::size_t state = 0; state < base::kJobStateWords.size(); ++state) {
    if (!base::is_final(static_cast<base::JobState>(state))) continue;
    ended.value(static_cast<double>(input.counters.jobs_ended[state]),
                {{"state", std::string(base::kJobStateWords[state])}});
  }
  out.counter("scored_deadlocks_total", "Jobs that were found deadlocked.")
      .value(static_cast<double>(input.counters.deadlocks));
  out.counter("scored_timetables_total", "Timetables published.")
      .value(static_cast<double>(input.counters.epochs));
  out.counter("scored_timetables_late_total", "Timetables that reached a node late.")
      .value(static_cast<double>(input.counters.late_epochs));
  if (input.has_current_follower) {
    out.gauge("scored_head_in_charge", "1: this head is in charge; 0: it follows the other one.")
        .value(1);
    out.gauge("scored_head_follower_current",
              "1: the other head has every change and can take over. This one is in charge.")
        .value(*input.has_current_follower ? 1 : 0);
  }
  export_nodes(out, input.view, input.meter);
  export_accounts(out, input.accounts);
  export_pools(out, input.pools);
  export_scratch(out, input.view, input.meter);
  export_requests(out, input.requests);
  export_documents(out, input.hub.counters(), input.hub.viewer_count());
  control::export_control(out, input.control);
  auto denied = out.counter("score_denied_total", "Requests that were refused to their sender.");
  for (const auto& [key, count] : input.denied) {
    denied.value(static_cast<double>(count),
                 {{"rpc", std::string(key.first)}, {"reason", std::string(key.second)}});
  }
  export_notices(out, input.notices);
  monitor::export_process(out);
  return out.text();
}

}  // namespace score::head
