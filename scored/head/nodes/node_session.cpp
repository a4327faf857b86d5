#include "scored/head/nodes/node_session.hpp"

#include "base/limits.hpp"
#include "base/os/host_facts.hpp"
#include "proto/convert/convert.hpp"
#include "proto/frames/errc.hpp"
#include "proto/frames/hello.hpp"
#include "proto/frames/parse.hpp"
#include "scored/head/config/version.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace score::head {
namespace {

using proto::FrameType;

class NodeDisconnectGuard {
 public:
  NodeDisconnectGuard(NodeManager& manager, NodeId node,
                      std::shared_ptr<proto::Connection> connection)
      : manager_(manager), node_(node), connection_(std::move(connection)) {}

  NodeDisconnectGuard(const NodeDisconnectGuard&) = delete;
  NodeDisconnectGuard& operator=(const NodeDisconnectGuard&) = delete;

  ~NodeDisconnectGuard() {
    connection_->close();
    manager_.lost(node_, *connection_);
  }

 private:
  NodeManager& manager_;
  NodeId node_;
  std::shared_ptr<proto::Connection> connection_;
};

// Returns 0 if the message is not about an attempt.
AttemptId attempt_of(const NodeToHead& message) {
  return std::visit(
      [](const auto& one) {
        if constexpr (requires { one.attempt; }) return one.attempt;
        return AttemptId();
      },
      message);
}

// The error names both releases and what to do.
Result<std::uint32_t> choose_version(const wire::NodeHello& hello, const std::string& name) {
  const std::string who =
      fmt::format("{} (release {})", name, escape_terminal(hello.release(), 40));
  auto version = proto::choose_version({hello.lowest_version(), hello.highest_version()}, who);
  if (version) return version;
  return fail(proto::WireErrc::BadVersion, "{}; install release {} on {}",
              version.error().context(), kVersion, name);
}

}  // namespace

NodeSession::NodeSession(const Parts& parts, Clock& clock, NodeId node,
                         std::shared_ptr<proto::Connection> connection)
    : parts_(parts), clock_(clock), node_(node), connection_(std::move(connection)) {}

asio::awaitable<void> NodeSession::run(Result<proto::InFrame> hello) {
  const NodeDisconnectGuard farewell(parts_.manager, node_, connection_);
  if (!hello) {
    refuse(hello.error());
    co_return;
  }
  if (!greet(*hello)) {
    co_await connection_->drained(1);  // the peer reads the reason first
    co_return;
  }
  for (;;) {
    auto frame = co_await connection_->read(proto::Role::Node);
    if (!frame) {
      if (!frame.error().is(Errc::Closed)) refuse(frame.error());
      co_return;
    }
    if (!dispatch(*frame)) co_return;
  }
}

bool NodeSession::greet(const proto::InFrame& frame) {
  auto hello = proto::parse<wire::NodeHello>(frame);
  if (!hello) return refuse(hello.error());
  const std::string& name = parts_.head.links.name(node_);
  if (hello->name() != name) {
    return refuse(fail(Errc::Denied, "the key of {} says it is {}", name,
                       escape_terminal(hello->name(), 80)));
  }
  const auto version = choose_version(*hello, name);
  if (!version) {
    wire::Failed failed;
    failed.mutable_error()->set_text(version.error().context());
    proto::send(*connection_, failed);
    return refuse(version.error());
  }
  auto known = proto::from_wire(*hello);
  if (!known) return refuse(known.error());
  if (parts_.manager.is_taken(node_, hello->instance(), connection_->peer())) return false;
  if (parts_.manager.is_outlived(node_, Epoch(hello->head_epoch()), hello->head_proof()))
    return false;
  const bool has_lost_job = parts_.manager.has_lost_job(node_, *known);
  parts_.manager.saw_job(node_, JobId(hello->last_job()), hello->last_job_proof());
  if (has_lost_job) {
    wire::Failed failed;
    failed.mutable_error()->set_text("its database is older than a job of this node");
    proto::send(*connection_, failed);
    return false;
  }
  NodeVitals vitals;
  vitals.switching = hello->switching();
  vitals.network_problem = escape_terminal(hello->network_problem(), 160);
  vitals.release = escape_terminal(hello->release(), 80);
  vitals.pid = hello->pid();
  vitals.instance = hello->instance();
  vitals.takes_attempt_secrets = hello->takes_attempt_secrets();
  vitals.passes_refusals = hello->passes_refusals();
  vitals.reads_stacks = hello->reads_stacks();
  wire::NodeWelcome welcome;
  welcome.set_version(*version);
  welcome.set_cluster(parts_.head.config.cluster);
  welcome.set_head_epoch(parts_.manager.incarnation().value());
  welcome.set_head_proof(parts_.manager.proof());
  welcome.set_clock(monotonic_clock_name());
  welcome.set_control_rank(parts_.manager.control().rank_for(node_));
  welcome.set_bounded_exchange(true);
  welcome.set_takes_hook_reports(true);
  welcome.set_takes_usage_samples(true);
  welcome.set_takes_memory_reports(true);
  proto::send(*connection_, welcome);
  parts_.manager.connected(node_, *known, std::move(vitals), connection_);
  return true;
}

template <class Message, class Collector>
bool NodeSession::handle_reply(const proto::InFrame& frame, Collector& collector) {
  auto reply = proto::parse<Message>(frame);
  if (!reply) return refuse(reply.error());
  collector.reply(node_, std::move(*reply));
  return true;
}

bool NodeSession::dispatch(const proto::InFrame& frame) {
  const TimePoint received = clock_.now();
  switch (frame.type) {
    case FrameType::Heartbeat:
      answer_heartbeat(frame, received);
      return true;
    case FrameType::TaskOutput:
      return handle_stream<wire::TaskOutput>(
          frame, [this](auto&& message) { parts_.streams.task_output(node_, std::move(message)); });
    case FrameType::TaskInputTaken:
      return handle_stream<wire::TaskInputTaken>(
          frame, [this](auto&& message) { parts_.streams.task_input_taken(node_, message); });
    case FrameType::FenceEnter:
      return handle_stream<wire::FenceEnter>(
          frame, [this](auto&& message) { parts_.streams.fence_enter(node_, std::move(message)); });
    case FrameType::JobRelay:
      return handle_stream<wire::JobRelay>(
          frame, [this](auto&& message) { parts_.streams.relay(node_, std::move(message)); });
    case FrameType::NetworkRequest:
      return handle_stream<wire::NetworkRequest>(frame, [this](auto&& message) {
        parts_.networks.request(node_, AttemptId(message.attempt()));
      });
    case FrameType::NetworkPrepared:
      return handle_stream<wire::NetworkPrepared>(
          frame, [this](auto&& message) { parts_.networks.prepared(node_, std::move(message)); });
    case FrameType::NetworkRefused:
      return handle_stream<wire::NetworkRefused>(
          frame, [this](auto&& message) { parts_.networks.refused(node_, message); });
    case FrameType::ScratchReady:
      return handle_stream<wire::ScratchReady>(
          frame, [this](auto&& message) { parts_.volumes.ready(node_, message); });
    case FrameType::NodeTraceReply:
      return handle_reply<wire::NodeTraceReply>(frame, parts_.traces);
    case FrameType::FactsReply:
      return handle_reply<wire::FactsReply>(frame, parts_.facts);
    case FrameType::StacksReply:
      return handle_reply<wire::StacksReply>(frame, parts_.stacks);
    case FrameType::CheckpointReply:
      return handle_reply<wire::CheckpointReply>(frame, parts_.checkpoints);
    case FrameType::ControlOffer: {
      const auto offer = proto::parse<wire::ControlOffer>(frame);
      if (!offer) return refuse(offer.error());
      parts_.manager.control().offered(node_, *offer);
      return true;
    }
    case FrameType::HookReport: {
      const auto report = proto::parse<wire::HookReport>(frame);
      if (!report) return refuse(report.error());
      parts_.hooks.reported(node_, *report, connection_);
      return true;
    }
    case FrameType::NodeSample:
      return handle_sample(frame);
    case FrameType::UsageSample:
      return handle_usage(frame);
    default:
      return handle_report(frame);
  }
}

// Answers the clock exchange. The times of arrival and departure are taken before any other work.
void NodeSession::answer_heartbeat(const proto::InFrame& frame, TimePoint received) {
  auto heartbeat = proto::parse<wire::Heartbeat>(frame);
  if (!heartbeat) {
    refuse(heartbeat.error());
    return;
  }
  if (heartbeat->node_sent_ns() != 0) {
    wire::HeartbeatReply reply;
    reply.set_node_sent_ns(heartbeat->node_sent_ns());
    reply.set_head_received_ns(received.time_since_epoch().count());
    reply.set_head_sent_ns(clock_.now().time_since_epoch().count());
    proto::send(*connection_, reply);
  }
  parts_.manager.heartbeat(node_, *heartbeat);
}

// A message about an attempt that has ended is late, not wrong, so it is dropped.
template <class Message, class Handler>
bool NodeSession::handle_stream(const proto::InFrame& frame, Handler handler) {
  auto message = proto::parse<Message>(frame);
  if (!message) return refuse(message.error());
  const AttemptId attempt(message->attempt());
  if (!parts_.streams.is_current(attempt)) return true;
  if (!parts_.streams.is_on(node_, attempt)) {
    refuse(
        fail(Errc::Denied, "{} of attempt {} on other nodes", proto::name_of(frame.type), attempt));
    return true;
  }
  handler(std::move(*message));
  return true;
}

// Removes what a sample says of attempts that do not run on this node.
template <class Items>
void NodeSession::drop_foreign(Items& items) const {
  const auto kept = std::remove_if(items.begin(), items.end(), [this](const auto& item) {
    return !parts_.streams.is_on(node_, AttemptId(item.attempt()));
  });
  items.erase(kept, items.end());
}

bool NodeSession::handle_usage(const proto::InFrame& frame) {
  const auto sample = proto::parse<wire::UsageSample>(frame);
  if (!sample) return refuse(sample.error());
  const WallTime now = wall_now();
  for (const wire::AttemptUse& use : sample->uses()) {
    parts_.head.jobs.note_use(AttemptId(use.attempt()), node_, now,
                              {.cpu = Duration(use.cpu_ns()),
                               .memory = Bytes(use.memory_bytes()),
                               .pm_sent = Bytes(use.pm_sent_bytes())});
  }
  return true;
}

// Hundreds of samples per second arrive while viewers watch, so all but large ones are parsed into
// the same memory.
bool NodeSession::handle_sample(const proto::InFrame& frame) {
  constexpr std::size_t kMostKept = 16 * limits::kKiB;
  static thread_local wire::NodeSample kept;
  wire::NodeSample big;
  wire::NodeSample& sample = frame.payload.size() <= kMostKept ? kept : big;
  if (!proto::parse_into(sample, frame.payload)) {
    return refuse(fail(proto::WireErrc::BadMessage, "cannot parse {}", name_of(frame.type)));
  }
  drop_foreign(*sample.mutable_gangs());
  drop_foreign(*sample.mutable_scratch());
  parts_.manager.sampled(node_, sample);
  return true;
}

bool NodeSession::handle_report(const proto::InFrame& frame) {
  if (frame.type == FrameType::NodeHello)
    return refuse(fail(Errc::WrongState, "unexpected second hello"));
  auto report = proto::decode_node_to_head(frame.type, frame.payload);
  if (!report) return refuse(report.error());
  const AttemptId attempt = attempt_of(*report);
  const bool is_wrong_node = attempt != AttemptId() && parts_.streams.is_current(attempt) &&
                             !parts_.streams.is_on(node_, attempt);
  if (is_wrong_node && !proto::may_send(proto::Role::WrongNode, frame.type)) {
    refuse(
        fail(Errc::Denied, "{} of attempt {} on other nodes", proto::name_of(frame.type), attempt));
    return true;
  }
  parts_.manager.reported(node_, *report);
  return true;
}

bool NodeSession::refuse(const Error& error) {
  if (limiter_.allow(clock_.now())) {
    log_warning("Refused node", kv("peer", connection_->peer()), kv("err", error),
                kv("suppressed", limiter_.take_suppressed()));
  }
  return false;
}

}  // namespace score::head
