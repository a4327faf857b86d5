#include "scored/head/process/leader_election.hpp"

#include "base/limits.hpp"
#include "base/overloaded.hpp"
#include "base/text.hpp"
#include "monitor/model/settings.hpp"
#include "proto/frames/hello.hpp"
#include "proto/frames/parse.hpp"
#include "proto/transport/setup_token.hpp"
#include "scored/head/config/version.hpp"
#include "scored/head/nodes/node_changes.hpp"
#include "scored/head/nodes/node_keys.hpp"
#include "scored/head/nodes/setup_manager.hpp"
#include "scored/shared/leases/lease_wire.hpp"

#include <algorithm>
#include <utility>

namespace score::head {
namespace {

// A connection to the other head that is silent for this time is closed and reopened; each head
// sends more often than that.
constexpr Duration kSilence = 4s;
constexpr Duration kReconnect = 250ms;
constexpr std::size_t kMostUrlBytes = 400;  // the frame has room for it
// A leader renews its lease here several times within this time.
constexpr Duration kLedLately = 1500ms;

proto::ConnectionLimits link_limits() {
  proto::ConnectionLimits limits;
  limits.write_queue_bytes = 4 * limits::kMaxPeerQueueBytes;
  limits.write_deadline = kSilence;
  limits.frame_deadline = limits::kFrameDeadline;
  return limits;
}

std::unique_ptr<proto::TlsContext> make_tls(const HeadConfig& config, const proto::KeyRing& ring) {
  const proto::HeadIdentity identity{config.self, ring.newest().number};
  return proto::TlsContext::client(*ring.head_key(identity), format_head_identity(identity));
}

// Sends the reason to the peer before the connection is closed.
asio::awaitable<void> close_with(std::shared_ptr<proto::Connection> connection, std::string why) {
  wire::Failed failed;
  failed.mutable_error()->set_text(std::move(why));
  proto::send(*connection, failed);
  co_await connection->drained(1);
  connection->close();
}

}  // namespace

LeaderElection::LeaderElection(const Parts& parts, gang::Leadership::Settings settings,
                               gang::LogPosition position, gang::StoredTerms terms)
    : parts_(parts),
      witnesses_(parts.config, parts.ring),
      leadership_(witnesses_.settings(settings), position, terms, parts.clock.now()),
      tls_(make_tls(parts.config, parts.ring)),
      alarm_(parts.io, parts.clock),
      vote_(terms.granted) {
  server_tls_ =
      proto::TlsContext::server([this](std::string_view identity) { return key_of(identity); });
}

std::optional<proto::Key> LeaderElection::key_of(std::string_view identity) const {
  if (const auto head = proto::parse_head_identity(identity)) {
    if (head->head == parts_.config.self) return std::nullopt;
    return parts_.ring.head_key(*head);
  }
  if (is_valid_token(parts_.config, identity, wall_now())) {  // it will be sent to the other head
    return proto::derive_setup_key(parts_.ring.newest().key, identity);
  }
  const auto node = proto::parse_node_identity(identity);
  const auto changes = NodeChanges::load(parts_.config.state_dir);
  if (!node || !changes) return std::nullopt;
  const auto nodes = changes->applied_to(parts_.config.configured_nodes);
  if (std::ranges::find(nodes, node->node) == nodes.end()) return std::nullopt;
  NodeKeys keys(parts_.config.state_dir + "/node-keys");
  if (!keys.load() || !keys.accepts(*node)) return std::nullopt;
  return parts_.ring.node_key(*node);
}

const proto::TcpEndpoint& LeaderElection::other_endpoint() const {
  return parts_.config.heads[gang::other_head(parts_.config.self)];
}

void LeaderElection::start() {
  parts_.tasks.spawn("ask witnesses", run_timer());
  if (parts_.etcd != nullptr) {
    parts_.etcd->handle([this](const gang::LeaseReply& reply) { etcd_replied(reply); });
    parts_.tasks.spawn("keep the lease in etcd", parts_.etcd->run());
  }
  if (parts_.config.self == 1) parts_.tasks.spawn("connect to the other head", connect_other());
}

// ---- decisions ----------------------------------------------------------------------------------

void LeaderElection::perform(gang::LeadershipActions actions) {
  for (const auto& action : actions) {
    std::visit(Overloaded{
                   [&](const gang::AskWitnesses& one) { send(one); },
                   [&](const gang::StoreTerm& one) {
                     if (handlers_.store_term) handlers_.store_term(one.term);
                   },
                   [&](const gang::TakeCharge& one) {
                     if (handlers_.take_charge) handlers_.take_charge(one.term);
                   },
                   [&](const gang::StandDown& one) {
                     if (handlers_.stand_down) handlers_.stand_down(one.why);
                   },
               },
               action);
  }
  const TimePoint next = leadership_.next_deadline();
  const bool leads = role() == gang::LeadershipRole::Leader;
  in_charge_until_ = leads ? next : TimePoint();  // the leases last until then
  alarm_.at(next);
  if (handlers_.advanced) handlers_.advanced();
}

bool LeaderElection::is_in_charge() {
  const TimePoint now = parts_.clock.now();
  if (now < in_charge_until_ || leadership_.is_in_charge(now)) return true;
  perform(leadership_.tick(now));
  return false;
}

void LeaderElection::send(const gang::AskWitnesses& asks) {
  witnesses_.send(asks.request, asks.is_note);
  if (parts_.etcd != nullptr) parts_.etcd->ask(witnesses_.sealed(asks.request));
  if (other_ && !asks.is_note) proto::send(*other_, proto::to_wire(asks.request));
}

// Etcd is the only witness.
void LeaderElection::etcd_replied(gang::LeaseReply reply) {
  reply.mark = witnesses_.checked(reply.mark);
  perform(leadership_.witness_replied(0, reply, parts_.clock.now()));
}

void LeaderElection::term_stored(Epoch term) {
  perform(leadership_.term_stored(term, parts_.clock.now()));
}

void LeaderElection::committed(std::uint64_t sequence) {
  perform(leadership_.committed(sequence, parts_.clock.now()));
}

void LeaderElection::follower_current(std::uint64_t sequence) {
  follower_stored_ = sequence;
  perform(leadership_.follower_current(sequence, parts_.clock.now()));
}

void LeaderElection::follower_stored(std::uint64_t sequence) {
  follower_stored_ = sequence;
  perform(leadership_.follower_stored(sequence, parts_.clock.now()));
}

void LeaderElection::follower_lost() {
  perform(leadership_.follower_lost(parts_.clock.now()));
}

asio::awaitable<void> LeaderElection::run_timer() {
  for (;;) {
    const TimePoint now = parts_.clock.now();
    perform(leadership_.tick(now));
    if (handlers_.tick) handlers_.tick(now);
    if (other_ && now - other_heard_ > kSilence) drop_other("the other head is silent");
    co_await alarm_.sleep_until(std::max(leadership_.next_deadline(), now + 1ms));
  }
}

bool LeaderElection::is_other_in_charge() const {
  return role() == gang::LeadershipRole::Follower && other_led_ &&
         parts_.clock.now() - *other_led_ < kLedLately;
}

// ---- the nodes as witnesses ---------------------------------------------------------------------

void LeaderElection::take(Arrival arrival) {
  const bool is_head = proto::parse_head_identity(arrival.identity).has_value();
  const auto node = proto::parse_node_identity(arrival.identity);
  if (is_head && arrival.first.type == proto::FrameType::HeadHello) {
    parts_.tasks.spawn("serve the other head", serve_other(std::move(arrival)));
  } else if (node && arrival.first.type == proto::FrameType::WitnessHello) {
    parts_.tasks.spawn("serve witness", serve_witness(node->node, std::move(arrival)));
  } else {
    parts_.tasks.spawn("refuse peer", refuse_arrival(std::move(arrival)));
  }
}

asio::awaitable<void> LeaderElection::refuse_arrival(Arrival arrival) {
  const std::string other = proto::format_endpoint(other_endpoint());
  std::string why = fmt::format("this head is not in charge; the other one is {}", other);
  if (arrival.first.type == proto::FrameType::SetupHello) {
    why = is_other_in_charge()
              ? fmt::format("it follows the head at {0}; give --head {0}", other)
              : std::string("no head of the cluster is in charge at the moment; try again");
  }
  co_await close_with(arrival.connection, std::move(why));
}

asio::awaitable<void> LeaderElection::serve_witness(std::string node, Arrival arrival) {
  const auto connection = arrival.connection;
  const auto message = proto::parse<wire::WitnessHello>(arrival.first);
  if (!message || message->name() != node) {
    connection->close();
    co_return refuse(connection->peer(), Error(Errc::Denied, "not a witness of this cluster"));
  }
  const auto version =
      proto::choose_version({message->lowest_version(), message->highest_version()}, node);
  if (!version) {
    connection->close();
    co_return refuse(connection->peer(), version.error());
  }
  const std::size_t place = witnesses_.place_of(node);
  witnesses_.connected(place, connection);
  for (;;) {
    auto frame = co_await connection->read(proto::Role::Node);
    if (!frame) break;
    auto reply = leases::read<wire::LeaseReply>(*frame);
    if (!reply) {
      refuse(connection->peer(), reply.error());
      break;
    }
    if (const auto vote = witnesses_.vote_of(place)) {
      reply->mark = witnesses_.checked(reply->mark);
      perform(leadership_.witness_replied(*vote, *reply, parts_.clock.now()));
    }
  }
  connection->close();
  witnesses_.lost(place, connection);
}

// ---- the other head -----------------------------------------------------------------------------

std::string LeaderElection::hello() const {
  const auto spoken = proto::spoken_versions();
  wire::HeadHello hello;
  hello.set_lowest_version(spoken.lowest);
  hello.set_highest_version(spoken.highest);
  hello.set_release(kVersion);
  hello.set_cluster(parts_.config.cluster);
  hello.set_head(parts_.config.self);
  hello.set_nodes(witnesses_.digest());
  if (dashboard_.size() <= kMostUrlBytes) hello.set_dashboard_url(dashboard_);
  return hello.SerializeAsString();
}

Status LeaderElection::check_hello(const proto::InFrame& frame) {
  const auto hello = proto::parse<wire::HeadHello>(frame);
  if (!hello) return hello.error();
  const auto version =
      proto::choose_version({hello->lowest_version(), hello->highest_version()}, "the other head");
  if (!version) return version.error();
  if (hello->head() != gang::other_head(parts_.config.self)) {
    return fail(Errc::Denied, "both heads say that they are number {} of the list \"heads\"",
                parts_.config.self + 1);
  }
  if (hello->cluster() != parts_.config.cluster) {
    return fail(Errc::Denied, "the other head belongs to cluster {}",
                escape_terminal(hello->cluster(), 80));
  }
  if (hello->nodes() != witnesses_.digest()) {
    return fail(Errc::WrongState,
                "the two heads have different lists \"nodes\" or \"witnesses\": make them "
                "equal and restart both");
  }
  // Browsers are redirected to this URL, so only its scheme, name and port are kept.
  other_dashboard_ = monitor::parse_public_url(hello->dashboard_url()).value_or("");
  return {};
}

void LeaderElection::refuse(const std::string& peer, const Error& error) {
  if (!limiter_.allow(parts_.clock.now())) return;
  log_warning("Refused a peer", kv("peer", peer), kv("err", error),
              kv("suppressed", limiter_.take_suppressed()));
}

asio::awaitable<void> LeaderElection::serve_other(Arrival arrival) {
  const auto connection = arrival.connection;
  if (const auto sound = check_hello(arrival.first); !sound) {
    refuse(connection->peer(), sound.error());
    co_return co_await close_with(connection, sound.error().message());
  }
  connection->send(proto::FrameType::HeadHello, hello());
  co_await talk(connection);
}

asio::awaitable<bool> LeaderElection::greet_other(std::shared_ptr<proto::Connection> connection) {
  connection->send(proto::FrameType::HeadHello, hello());
  auto answer = co_await connection->read(proto::Role::Head);
  Status sound;
  if (!answer) {
    sound = answer.error();
  } else if (const auto failed = proto::parse<wire::Failed>(*answer)) {
    sound = fail(Errc::Denied, "{}", escape_terminal(failed->error().text(), 200));
  } else {
    sound = check_hello(*answer);
  }
  if (sound) co_return true;
  if (std::exchange(last_error_, sound.error().message()) != last_error_) {
    refuse(connection->peer(), sound.error());
  }
  connection->close();
  co_return false;
}

asio::awaitable<void> LeaderElection::connect_other() {
  for (;;) {
    auto peer = co_await proto::tls_connect(*tls_, other_endpoint(), limits::kHandshakeDeadline,
                                            link_limits());
    if (peer) {
      const auto connection = peer->connection;
      const bool is_greeted = co_await greet_other(connection);
      if (is_greeted) co_await talk(connection);
    }
    co_await parts_.clock.sleep_for(kReconnect);
  }
}

asio::awaitable<void> LeaderElection::talk(std::shared_ptr<proto::Connection> connection) {
  if (const auto before = std::exchange(other_, connection)) before->close();
  other_heard_ = parts_.clock.now();
  last_error_.clear();
  log_notice("Connected to the other head", kv("peer", connection->peer()));
  for (;;) {
    auto frame = co_await connection->read(proto::Role::Head);
    if (!frame || other_ != connection) break;
    other_heard_ = parts_.clock.now();
    other_says(*frame);
  }
  connection->close();
  if (other_ != connection) co_return;
  other_ = nullptr;
  other_led_.reset();
  unsent_.reset();
  log_warning("Lost connection to the other head", kv("peer", connection->peer()));
  leadership_.other_gone();
  if (handlers_.other_lost) handlers_.other_lost();
  follower_lost();
}

void LeaderElection::drop_other(const std::string& why) {
  if (!other_) return;
  log_warning("Closed the connection to the other head", kv("why", why));
  other_->close();
}

void LeaderElection::other_says(const proto::InFrame& frame) {
  switch (frame.type) {
    case proto::FrameType::LeaseRequest:
      return asked(frame);
    case proto::FrameType::LeaseReply: {
      const auto reply = leases::read<wire::LeaseReply>(frame);
      if (!reply) return drop_other(reply.error().message());
      return perform(leadership_.other_replied(*reply, parts_.clock.now()));
    }
    case proto::FrameType::FollowLog:
    case proto::FrameType::LogSnapshot:
    case proto::FrameType::LogPart:
    case proto::FrameType::LogChanges:
    case proto::FrameType::LogStored:
      if (handlers_.log_frame) handlers_.log_frame(frame);
      return;
    default:
      return drop_other("unexpected frame");
  }
}

void LeaderElection::asked(const proto::InFrame& frame) {
  const auto request = leases::read<wire::LeaseRequest>(frame);
  if (!request || request->head == parts_.config.self) return drop_other("invalid lease request");
  const TimePoint now = parts_.clock.now();
  const Answer answer{leadership_.answer(*request, now), request->mark.term == request->term};
  if (!answer.reply.granted || request->term <= vote_) return reply_to_other(answer);
  // A vote in a new term is stored before it is given. Meanwhile a repeated request replaces this
  // answer.
  const bool is_storing = unsent_.has_value();
  unsent_ = answer;
  if (!is_storing && handlers_.store_vote) handlers_.store_vote(request->term);
}

void LeaderElection::vote_stored(Epoch term) {
  vote_ = std::max(vote_, term);
  const auto answer = std::exchange(unsent_, std::nullopt);
  if (!answer) return;
  if (answer->reply.asked <= vote_) return reply_to_other(*answer);
  unsent_ = answer;
  if (handlers_.store_vote) handlers_.store_vote(answer->reply.asked);
}

void LeaderElection::reply_to_other(const Answer& answer) {
  if (!other_) return;
  proto::send(*other_, proto::to_wire(answer.reply));
  if (!answer.reply.granted || !answer.leads) return;
  other_led_ = parts_.clock.now();
  if (handlers_.can_follow) handlers_.can_follow();
}

// ---- for display --------------------------------------------------------------------------------

// Describes how far the other head follows this one.
void LeaderElection::describe_other(wire::HeadState& state) const {
  if (has_current_follower()) {
    state.set_state(wire::HeadState::CURRENT);
  } else if (follower_stored_) {
    state.set_state(wire::HeadState::BEHIND);
    state.set_missing(position().sequence - *follower_stored_);
  } else {
    state.set_state(wire::HeadState::NO_COPY);
  }
}

std::vector<wire::HeadState> LeaderElection::states() const {
  std::vector<wire::HeadState> states(gang::kHeads);
  const bool leads = role() == gang::LeadershipRole::Leader;
  for (gang::HeadIndex i = 0; i < gang::kHeads; ++i) {
    wire::HeadState& state = states[i];
    state.set_name(proto::format_endpoint(parts_.config.heads[i]));
    const bool is_self = i == parts_.config.self;
    state.set_in_charge(is_self && leads);
    state.set_is_connected(is_self || other_ != nullptr);
    if (is_self) {
      state.set_state(leads ? wire::HeadState::LEADS : wire::HeadState::STANDS_BY);
      if (!leads) state.set_reason(why_not());
      if (leads && parts_.etcd != nullptr) state.set_reason(parts_.etcd->describe());
    } else if (leads) {
      describe_other(state);
    } else {
      state.set_state(wire::HeadState::UNASSESSED);
    }
  }
  return states;
}

std::string LeaderElection::why_not() const {
  const std::string why = leadership_.why_not(parts_.clock.now());
  return parts_.etcd == nullptr ? why : fmt::format("{} ({})", why, parts_.etcd->describe());
}

std::string LeaderElection::summary() const {
  return "standby: " + why_not();
}

}  // namespace score::head
