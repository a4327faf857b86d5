// What nodes say, and what operators ask of nodes and of the cluster as a whole.
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "proto/convert/convert.hpp"
#include "scored/head/config/settings.hpp"
#include "scored/head/head.hpp"
#include "scored/journal/event.hpp"

#include <utility>

namespace score::head {
namespace {

constexpr Duration kTraceDeadline = 2s;
constexpr std::size_t kMaxTraceBytes = 12 * limits::kMiB;  // of one answer
constexpr std::size_t kMaxTraces = 8;                      // at a time: each is work for every node

}  // namespace

// ---- sessions -----------------------------------------------------------------------------------

std::string Head::proof() const {
  return key_ ? proto::prove_head(*key_, incarnation_) : std::string();
}

bool Head::is_outlived(NodeId node, Epoch newest, std::string_view proof) {
  if (newest <= incarnation_) return false;
  if (!key_ || !proto::is_head_proof(*key_, newest, proof)) {
    log_warning("believe no newer head", kv("node", links_.name(node)), kv("newer", newest));
    return false;
  }
  log_error("end: the cluster has a newer head", kv("incarnation", incarnation_),
            kv("newer", newest), kv("shown_by", links_.name(node)));
  if (on_outlived_) std::exchange(on_outlived_, nullptr)();
  return true;
}

void Head::node_connected(NodeId node, const NodeHello& hello, NodeVitals vitals,
                          std::shared_ptr<proto::Connection> connection) {
  NodeLinks::Link& link = links_.link(node);
  if (const auto before = std::exchange(link.connection, nullptr)) {
    before->close();
    streams_.link_lost(node);
    perform(cluster_.node_disconnected(node, now()));
  }
  link.connection = std::move(connection);
  link.vitals = std::move(vitals);
  link.vitals.last_heard = now();
  log_notice("connect node", kv("node", link.name), kv("cores", hello.info.cores),
             kv("attempts", hello.attempts.size()), kv("method", link.vitals.switch_method));
  perform(cluster_.node_connected(node, hello, now()));
  if (observer_ != nullptr) observer_->node_connected(node);
}

void Head::node_sampled(NodeId node, const wire::NodeSample& message) {
  if (observer_ != nullptr) observer_->node_sampled(node, message);
}

void Head::node_lost(NodeId node, const proto::Connection& connection) {
  NodeLinks::Link& link = links_.link(node);
  if (link.connection.get() != &connection) return;
  link.connection.reset();
  log_warning("lose node", kv("node", link.name));
  streams_.link_lost(node);
  perform(cluster_.node_disconnected(node, now()));
  if (observer_ != nullptr) observer_->node_lost(node);
}

void Head::node_says(NodeId node, const NodeToHead& message) {
  links_.link(node).vitals.last_heard = now();
  if (const auto* late = std::get_if<TimetableApplied>(&message)) {
    log_debug("late timetable", kv("node", links_.name(node)), kv("epoch", late->epoch),
              kv("late", format_duration(late->late)));
  }
  if (observer_ != nullptr) {
    if (const auto* task = std::get_if<base::TaskEnded>(&message)) {
      observer_->task_ended(node, base::job_of(task->attempt));
    }
  }
  perform(cluster_.node_says(node, message, now()));
}

void Head::heartbeat(NodeId node, const wire::Heartbeat& message) {
  NodeVitals& vitals = links_.link(node).vitals;
  vitals.cpu_ns = message.cpu_ns();
  vitals.rss_bytes = message.rss_bytes();
  vitals.clock_error_ns = message.clock_error_ns();
  vitals.switches = message.switches();
  vitals.late_switches = message.late_switches();
  vitals.last_heard = now();
  perform(cluster_.heartbeat(node, now()));
}

wire::NodeList Head::list_nodes() const {
  wire::NodeList list;
  for (const NodeId id : cluster_.nodes()) {
    const auto view = cluster_.node(id);
    if (!view) continue;
    const NodeVitals& vitals = links_.link(id).vitals;
    wire::NodeStatus& out = *list.add_nodes();
    out.set_name(links_.name(id));
    out.set_state(static_cast<std::uint32_t>(view->state));
    out.set_drained(view->drained);
    out.set_reason(view->drained ? view->drain_reason : view->down_reason);
    out.set_cores(view->info.cores);
    out.set_memory_bytes(view->info.memory.value());
    out.set_memory_reserved_bytes(view->memory_reserved.value());
    for (const JobId job : view->jobs) out.add_jobs(job.value());
    out.set_clock_error_ns(vitals.clock_error_ns);
    out.set_switch_method(vitals.switch_method);
    out.set_priority_method(vitals.priority_method);
    out.set_rss_bytes(vitals.rss_bytes);
    out.set_cpu_ns(vitals.cpu_ns);
    if (vitals.last_heard != TimePoint()) {
      out.set_last_heard_ns((now() - vitals.last_heard).count());
    }
    out.set_pid(vitals.pid);
    out.set_switches(vitals.switches);
    out.set_late_switches(vitals.late_switches);
  }
  return list;
}

// ---- traces -------------------------------------------------------------------------------------

Status Head::trace(Duration since, TraceDone done) {
  if (traces_.size() >= kMaxTraces) {
    return fail(Errc::Busy, "{} traces are being gathered already, try again", traces_.size());
  }
  const std::uint64_t tag = next_trace_++;
  TraceCollection& collection = traces_[tag];
  collection.done = std::move(done);
  collection.until = now() + kTraceDeadline;
  wire::NodeTraceRequest request;
  request.set_tag(tag);
  request.set_since_ns(since.count());
  const auto frame =
      proto::encode_frame(proto::FrameType::NodeTraceRequest, request.SerializeAsString());
  for (const NodeId node : links_.connected()) {
    collection.missing.insert(node);
    links_.send_shared(node, frame);
  }
  // Nobody to wait for, or a deadline earlier than the timer's.
  if (collection.missing.empty()) collection.until = now();
  armed_for_.reset();
  wake_.try_send(boost::system::error_code());
  return {};
}

void Head::trace_reply(NodeId node, wire::NodeTraceReply&& message) {
  const auto found = traces_.find(message.tag());
  if (found == traces_.end() || found->second.missing.erase(node) == 0) return;
  TraceCollection& collection = found->second;
  wire::NodeTrace& trace = *message.mutable_trace();
  trace.set_node(links_.name(node));
  const std::size_t bytes = trace.ByteSizeLong();
  if (collection.bytes + bytes > kMaxTraceBytes) {
    trace.set_lost(trace.lost() + static_cast<std::uint64_t>(trace.switches_size()));
    trace.clear_switches();
  } else {
    collection.bytes += bytes;
  }
  *collection.trace.add_nodes() = std::move(trace);
  if (collection.missing.empty()) {
    collection.until = now();
    finish_traces(now());
  }
}

void Head::finish_traces(TimePoint at) {
  for (auto next = traces_.begin(); next != traces_.end();) {
    const auto current = next++;
    if (current->second.until > at) continue;
    TraceCollection collection = std::move(current->second);
    traces_.erase(current);
    for (const NodeId node : collection.missing) {
      collection.trace.add_silent_nodes(links_.name(node));
    }
    collection.done(std::move(collection.trace));
  }
}

// ---- operators ----------------------------------------------------------------------------------

Status Head::set_quantum(const Peer& peer, Duration quantum) {
  auto actions = cluster_.set_quantum(quantum, now());
  if (!actions) return actions.error();
  report(Event::QuantumSet, kv("user", peer.name), kv("action", "set quantum"),
         kv("value", format_duration(quantum)), kv("via", peer.via));
  tell_audit(peer, "set quantum", format_duration(quantum), std::nullopt);
  commits_->add(quantum_setting(quantum));
  perform(std::move(*actions));
  return {};
}

Status Head::set_slots(const Peer& peer, std::uint32_t slots) {
  auto actions = cluster_.set_max_slots(slots, now());
  if (!actions) return actions.error();
  report(Event::CommandDone, kv("user", peer.name), kv("action", "set slots"), kv("value", slots),
         kv("via", peer.via));
  tell_audit(peer, "set slots", std::to_string(slots), std::nullopt);
  commits_->add(slots_setting(slots));
  perform(std::move(*actions));
  return {};
}

void Head::set_idle_detection(const Peer& peer, bool on) {
  report(Event::CommandDone, kv("user", peer.name), kv("action", "set idle detection"),
         kv("on", on));
  commits_->add(idle_setting(on));
  perform(cluster_.set_idle_detection(on, now()));
}

Status Head::drain(const Peer& peer, const wire::DrainNodes& message) {
  std::vector<NodeId> nodes;
  for (const std::string& list : message.nodes()) {
    const auto names = expand_hostlist(list);
    if (!names) return names.error();
    for (const std::string& name : *names) {
      const auto node = links_.find(name);
      if (!node) return node.error();
      nodes.push_back(*node);
    }
  }
  if (nodes.empty()) return fail(Errc::Malformed, "name at least one node");
  const std::string reason = escape_terminal(message.reason(), limits::kMaxErrorTextBytes);
  for (const NodeId node : nodes) {
    auto actions =
        message.resume() ? cluster_.resume_node(node, now()) : cluster_.drain(node, reason, now());
    if (!actions) return actions.error().with_context("{}", links_.name(node));
    report(Event::CommandDone, kv("user", peer.name),
           kv("action", message.resume() ? "resume" : "drain"), kv("node", links_.name(node)),
           kv("reason", reason), kv("via", peer.via));
    tell_audit(peer, message.resume() ? "resume" : "drain",
               fmt::format("{} {}", links_.name(node), reason), std::nullopt);
    commits_->add(
        drain_setting(links_.name(node), message.resume() ? std::nullopt : std::optional(reason)));
    perform(std::move(*actions));
  }
  return {};
}

void Head::shut_down(const Peer& peer, std::function<void()> on_idle) {
  report(Event::CommandDone, kv("user", peer.name), kv("action", "shut down"), kv("jobs", active_));
  is_shutting_down_ = true;
  on_idle_ = std::move(on_idle);
  idle_deadline_ = now() + limits::kStopDeadline;
  std::vector<JobId> all;
  for (const auto& [id, job] : jobs_) {
    if (!job.ended) all.push_back(id);
  }
  for (const JobId id : all) finish_cancel(id, gang::EndCause::Shutdown);
  check_idle();
}

void Head::check_idle() {
  if (!on_idle_ || active_ > 0) return;
  commits_->after([this](const Status&) {
    if (on_idle_) std::exchange(on_idle_, nullptr)();
  });
}

Status Head::reconfigure(HeadConfig wanted) {
  if (auto possible = check_reload(config_, wanted); !possible) return possible;
  for (const std::string& name : wanted.nodes) {
    if (links_.has(name)) continue;
    if (auto added = add_node(name); !added) return added;
    log_notice("add node", kv("node", name));
  }
  const Peer self{UserId(0), proto::Role::Root, "configuration"};
  if (wanted.quantum != config_.quantum) {
    if (auto set = set_quantum(self, wanted.quantum); !set) return set;
  }
  if (wanted.slots != config_.slots) {
    if (auto set = set_slots(self, wanted.slots); !set) return set;
  }
  networks_.set_channels(wanted.network.channels);
  if (wanted.idle_detection != config_.idle_detection) {
    set_idle_detection(self, wanted.idle_detection);
  }
  cluster_.set_max_requeues(wanted.max_requeues);
  cluster_.set_overcommit(wanted.overcommit);
  users_.set_rule(wanted.operators);
  users_.set_exempt(wanted.limits.exempt);
  set_log_level(wanted.log_level);
  config_ = std::move(wanted);
  return {};
}

}  // namespace score::head
