#include "scored/head/nodes/node_manager.hpp"

#include "base/limits.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "proto/convert/words.hpp"
#include "scored/shared/journal/event.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace score::head {
namespace {

// A node that is alive is heard within this time: two heartbeats and a margin.
constexpr std::size_t kMostSkips = 64;
constexpr Duration kHeard = 2 * limits::kHeartbeatPeriod + 500ms;

// Administrators search the log for nodes that accept jobs again and for nodes that are lost, so
// these changes are events.
void log_change(const gang::NodeView& node, const char* state) {
  const auto log = [&](const auto& write) {
    write(kv("node", node.info.name), kv("state", state), kv("drained", node.drained),
          kv("reason", node.down_reason));
  };
  if (node.state == gang::NodeState::Down) {
    log([](const auto&... values) { report(Event::NodeDown, values...); });
  } else if (node.state == gang::NodeState::Up && !node.drained) {
    log([](const auto&... values) { report(Event::NodeUp, values...); });
  } else {
    log([](const auto&... values) { log_info("Changed node", values...); });
  }
}

// Returns a text such as "node03 is down: lost" or "node03 is up, but drained: new fans".
std::string text_of(const gang::NodeView& node, const char* state) {
  const auto because = [](const std::string& why) { return why.empty() ? "" : ": " + why; };
  std::string text = fmt::format("{} is {}{}", node.info.name, state, because(node.down_reason));
  if (!node.drained) return text;
  const bool is_up = node.state == gang::NodeState::Up;
  return text + (is_up ? ", but drained" : ", and drained") + because(node.drain_reason);
}

}  // namespace

NodeManager::NodeManager(HeadContext& head, Parts parts, Epoch incarnation)
    : head_(head),
      streams_(parts.streams),
      control_(parts.control),
      secrets_(parts.secrets),
      incarnation_(incarnation) {
  control_.on_relayed_heartbeats(
      [this](const gang::RelayedHeartbeats& heartbeats) { relayed_heartbeats(heartbeats); });
  head_.runner.cluster().set_incarnation(incarnation);
}

void NodeManager::set_keys(const proto::KeyRing& cluster_keys) {
  keys_ = cluster_keys;
  secrets_.set_keys(cluster_keys);
}

// ---- newest head --------------------------------------------------------------------------------

void NodeManager::set_incarnation(Epoch incarnation) {
  incarnation_ = incarnation;
  head_.runner.cluster().set_incarnation(incarnation);
}

std::string NodeManager::proof() const {
  return keys_ ? proto::prove_head(keys_->newest().key, incarnation()) : std::string();
}

std::string NodeManager::job_proof(JobId job) const {
  return keys_ ? proto::prove_job(keys_->newest().key, job) : std::string();
}

bool NodeManager::is_outlived(NodeId node, Epoch newest, std::string_view proof) {
  if (newest <= incarnation()) return false;
  const std::string& name = head_.links.name(node);
  if (!keys_ || !keys_->is_head_proof(newest, proof)) {
    log_warning("Rejected unproven claim of a newer head", kv("node", name), kv("newer", newest));
    return false;
  }
  if (on_behind_) {
    log_notice("Taking over from a newer head", kv("incarnation", incarnation()),
               kv("newer", newest), kv("node", name));
    on_behind_(newest);
    return true;
  }
  log_error("Stopping: the cluster has a newer head", kv("incarnation", incarnation()),
            kv("newer", newest), kv("node", name));
  if (on_outlived_) std::exchange(on_outlived_, nullptr)();
  return true;
}

bool NodeManager::has_lost_job(NodeId node, const NodeHello& hello) const {
  if (accepts_loss_ || !last_number_) return false;
  const auto is_lost = [this, given = last_number_()](const AttemptReport& report) {
    const JobId job = base::job_of(report.attempt);
    return job > given || std::ranges::any_of(skipped_, [job](const auto& range) {
             return range.first < job && job <= range.second;
           });
  };
  const auto lost = std::ranges::find_if(hello.attempts, is_lost);
  if (lost == hello.attempts.end()) return false;
  log_error(
      "A node runs a job that this database lacks: it is an older copy; start the head with "
      "--recover to end the job, or restore the newer database",
      kv("node", head_.links.name(node)), kv("job", base::job_of(lost->attempt)));
  return true;
}

void NodeManager::saw_job(NodeId node, JobId last, std::string_view proof) {
  const JobId before = last_number_ ? last_number_() : JobId();
  if (on_job_seen_) on_job_seen_(node, last, keys_ && keys_->is_job_proof(last, proof));
  if (!last_number_ || last_number_() <= before) return;
  if (skipped_.size() == kMostSkips) skipped_.erase(skipped_.begin());
  skipped_.emplace_back(before, last_number_());
}

// ---- sessions -----------------------------------------------------------------------------------

// A daemon that was killed, or whose host was rebooted, has lost its connection or soon becomes
// silent, so it does not block its successor.
bool NodeManager::is_taken(NodeId node, std::uint64_t instance, const std::string& peer) {
  const NodeLinks::Link& link = head_.links.link(node);
  if (!link.connection || !link.connection->is_open()) return false;
  if (link.vitals.instance == instance || now() - link.vitals.last_heard > kHeard) return false;
  LogLimiter& limiter = second_daemons_.try_emplace(node, 1.0 / 60, 1).first->second;
  if (limiter.allow(now())) {
    log_warning("Refused a second daemon with the key of a node", kv("node", link.name),
                kv("peer", peer), kv("first", link.connection->peer()),
                kv("suppressed", limiter.take_suppressed()));
  }
  return true;
}

void NodeManager::connected(NodeId node, const NodeHello& hello, NodeVitals vitals,
                            std::shared_ptr<proto::Connection> connection) {
  gang::Cluster& cluster = head_.runner.cluster();
  NodeLinks::Link& link = head_.links.link(node);
  if (const auto before = std::exchange(link.connection, nullptr)) {
    before->close();
    streams_.link_lost(node);
    head_.runner.perform(cluster.node_disconnected(node, now()));
  }
  link.connection = std::move(connection);
  link.vitals = std::move(vitals);
  link.vitals.last_heard = now();
  link.is_stopping = false;
  log_notice("Connected node", kv("node", link.name), kv("cores", hello.info.cores),
             kv("attempts", hello.attempts.size()),
             kv("method", proto::word_of(link.vitals.switching.method())));
  head_.runner.perform(cluster.node_connected(node, hello, now()));
  for (const AttemptReport& report : hello.attempts) secrets_.send(node, report.attempt);
  if (observer_ != nullptr) observer_->node_connected(node);
}

void NodeManager::lost(NodeId node, const proto::Connection& connection) {
  NodeLinks::Link& link = head_.links.link(node);
  if (link.connection.get() != &connection) return;
  link.connection.reset();
  log_warning("Lost connection to node", kv("node", link.name), kv("announced", link.is_stopping));
  streams_.link_lost(node);
  head_.runner.perform(head_.runner.cluster().node_disconnected(node, now(), link.is_stopping));
  if (observer_ != nullptr) observer_->node_lost(node);
}

void NodeManager::reported(NodeId node, const NodeToHead& message) {
  head_.links.link(node).vitals.last_heard = now();
  if (const auto* applied = std::get_if<TimetableApplied>(&message)) {
    log_debug("Node received its timetable late", kv("node", head_.links.name(node)),
              kv("epoch", applied->epoch), kv("late", format_duration(applied->late)));
  }
  const auto* task = std::get_if<base::TaskEnded>(&message);
  if (observer_ != nullptr && task != nullptr && streams_.is_on(node, task->attempt)) {
    observer_->task_ended(node, base::job_of(task->attempt));
  }
  head_.runner.perform(head_.runner.cluster().node_says(node, message, now()));
  // The cluster comes first, because it may end the whole job for this report.
  if (const auto* exited = std::get_if<base::Exited>(&message)) {
    streams_.node_ended(node, exited->attempt);
  }
}

void NodeManager::heartbeat(NodeId node, const wire::Heartbeat& message) {
  NodeVitals& vitals = head_.links.link(node).vitals;
  vitals.cpu_ns = message.cpu_ns();
  vitals.rss_bytes = message.rss_bytes();
  vitals.clock_error_ns = message.clock_error_ns();
  vitals.switches = message.switches();
  vitals.late_switches = message.late_switches();
  vitals.last_heard = now();
  head_.links.link(node).is_stopping = message.stopping();
  if (message.hears_nothing()) {
    gang::RelayedHeartbeats deaf;
    deaf.deaf.push_back(node);
    return head_.runner.perform(head_.runner.cluster().relayed_heartbeats(deaf, now()));
  }
  head_.runner.perform(head_.runner.cluster().heartbeat(node, now()));
}

void NodeManager::relayed_heartbeats(const gang::RelayedHeartbeats& relayed_heartbeats) {
  for (const NodeId node : relayed_heartbeats.alive)
    head_.links.link(node).vitals.last_heard = now();
  head_.runner.perform(head_.runner.cluster().relayed_heartbeats(relayed_heartbeats, now()));
}

void NodeManager::sampled(NodeId node, const wire::NodeSample& message) {
  if (observer_ != nullptr) observer_->node_sampled(node, message);
}

void NodeManager::changed(NodeId node) {
  const auto view = head_.runner.cluster().node(node);
  if (!view) return;
  constexpr std::array<const char*, 4> kStates = {"unknown", "up", "suspect", "down"};
  const char* state = kStates.at(static_cast<std::size_t>(view->state));
  log_change(*view, state);
  EventFeed::About about;
  about.node = node;
  head_.feed.add(monitor::EventKind::Node, text_of(*view, state), std::move(about));
  // The node's reports are about jobs that are lost, so it must say hello again.
  if (view->state != gang::NodeState::Down) return;
  control_.removed(node);
  if (const auto connection = head_.links.link(node).connection) connection->close();
}

}  // namespace score::head
