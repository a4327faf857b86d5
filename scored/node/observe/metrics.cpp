#include "scored/node/observe/metrics.hpp"

#include "base/os/log.hpp"
#include "monitor/metrics/exporter.hpp"
#include "scored/control/metrics.hpp"

namespace score::node {

Metrics::Metrics(Parts parts, std::string node)
    : parts_(parts), node_(std::move(node)), logins_([] { return std::string(); }) {}

Status Metrics::start(const monitor::MonitorSettings& settings, const std::string& run_dir) {
  if (!settings.node_listen) return {};
  monitor::HttpOptions options;
  options.host = settings.node_listen->host;
  options.names = settings.names;
  if (!settings.token_file.empty() && !monitor::is_loopback(options.host)) {
    auto token = monitor::load_token(settings.token_file);
    if (!token) return token.error().with_context("cannot load the token of [monitor]");
    options.token = *std::move(token);
    options.certificate = settings.certificate;
    options.key = settings.key;
  }
  server_.emplace(
      monitor::HttpServer::Parts{parts_.io, parts_.clock, parts_.tasks, logins_, *this, nullptr},
      std::move(options), monitor::PageFiles());
  if (auto opened = server_->open(settings.node_listen->port); !opened) return opened;
  server_->start();
  log_notice("Serving metrics", kv("address", server_->url()));
  return replace_file(run_dir + "/metrics.port", fmt::format("{}\n", server_->port()), 0644);
}

void Metrics::close() {
  if (server_) server_->close();
}

asio::awaitable<std::string> Metrics::metrics() {
  const monitor::NodeTotals totals = parts_.sampling.totals();
  monitor::Exporter out;
  out.gauge("scored_build_info", "1; the labels say what runs.")
      .value(1, {{"version", SCORE_VERSION}, {"node", node_}});
  monitor::export_node(out, totals);
  out.gauge("scored_node_attempts", "Jobs that have tasks on this node.")
      .value(static_cast<double>(parts_.attempts.running().size()));
  out.counter("scored_node_cpu_seconds_total", "CPU time of the jobs of a node.")
      .value(totals.user, {{"node", node_}, {"mode", "user"}})
      .value(totals.system, {{"node", node_}, {"mode", "system"}});
  out.counter("score_job_fill_seconds_total", "CPU time that jobs used at idle priority.")
      .value(totals.filled, {{"node", node_}});
  const ParkFigures parked = parts_.parker.figures();
  out.gauge("score_parked_jobs", "Jobs of a node whose memory is in swap.")
      .value(static_cast<double>(parked.parked), {{"node", node_}});
  out.gauge("score_parked_bytes", "Memory of parked jobs that is in swap.")
      .value(static_cast<double>(parked.in_swap.value()), {{"node", node_}});
  out.counter("score_parking_bytes_total", "Memory of jobs written to swap and read back.")
      .value(static_cast<double>(parked.written.value()), {{"node", node_}, {"way", "out"}})
      .value(static_cast<double>(parked.read.value()), {{"node", node_}, {"way", "in"}});
  out.gauge("score_memory_short", "1: the node has less memory than it keeps free.")
      .value(parked.is_short ? 1 : 0, {{"node", node_}});
  out.counter("score_parking_failures_total", "Jobs that could not be parked.")
      .value(static_cast<double>(parked.failures), {{"node", node_}});
  control::export_control(out, parts_.control);
  monitor::export_process(out);
  co_return out.text();
}

}  // namespace score::node
