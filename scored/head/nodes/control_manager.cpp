#include "scored/head/nodes/control_manager.hpp"

#include "base/os/log.hpp"
#include "base/text.hpp"
#include "proto/convert/convert.hpp"

#include <arpa/inet.h>
#include <sys/random.h>
#include <utility>

namespace score::head {

namespace {

constexpr std::size_t kMostReasonBytes = 120;

template <class T>
T random_number() {
  T number = 0;
  while (number == 0 && getrandom(&number, sizeof number, 0) == ssize_t{sizeof number}) continue;
  return number;
}

// Returns any interface, unless the head listens at one IPv4 address.
in_addr address_to_bind(const std::string& host) {
  in_addr address{.s_addr = htonl(INADDR_ANY)};
  inet_pton(AF_INET, host.c_str(), &address);
  return address;
}

}  // namespace

// The generation starts at a random number, so two heads have different generations even with equal
// keys.
ControlManager::ControlManager(asio::io_context& io, Clock& clock, NodeLinks& links)
    : clock_(clock),
      links_(links),
      network_(io.get_executor(), clock,
               [this](std::uint32_t source, const control::Message& message) {
                 on_message(source, message);
               }),
      heartbeats_(io.get_executor(), clock, network_,
                  [this](const control::HeadHeartbeats::News& news) { hear(news); }),
      timetables_(io.get_executor(), clock, network_,
                  {.unheard = [this] { return heartbeats_.unheard(); },
                   .deliver = nullptr,
                   .send_by_tls =
                       [this](std::uint32_t rank, const std::string& timetable) {
                         links_.send(control::node_of_rank(rank), proto::FrameType::SetTimetable,
                                     timetable);
                       }}),
      generation_(random_number<std::uint32_t>()) {}

Status ControlManager::open(const proto::TcpEndpoint& listen, std::uint32_t most_fanout,
                            TaskGroup& tasks) {
  most_fanout_ = most_fanout;
  if (auto opened = network_.open(address_to_bind(listen.host), tasks); !opened) return opened;
  tasks_ = &tasks;
  tasks.spawn("heartbeats over PM", heartbeats_.run());
  tasks.spawn("timetables over PM", timetables_.run());
  return {};
}

void ControlManager::close() {
  tasks_ = nullptr;
  leave();
}

std::uint32_t ControlManager::rank_for(NodeId node) const {
  return tasks_ != nullptr ? control::rank_of_node(node.value()) : 0;
}

void ControlManager::set_path(NodeId node, wire::NodeStatus::ControlPath path,
                              std::string problem) {
  NodeVitals& vitals = links_.link(node).vitals;
  vitals.control_path = path;
  vitals.control_problem = std::move(problem);
}

void ControlManager::offered(NodeId node, const wire::ControlOffer& offer) {
  if (tasks_ == nullptr) return;
  const auto address = control::from_wire(offer);
  const std::string reason = !address ? address.error().message() : offer.reason();
  set_path(node, wire::NodeStatus::TLS, escape_terminal(reason, kMostReasonBytes));
  if (!reason.empty()) {
    log_warning("Node is not in the PM network of the daemons", kv("node", links_.name(node)),
                kv("reason", escape_terminal(reason, kMostReasonBytes)));
  }
  if (members_.set(node, address ? *address : control::MemberAddress(), clock_.now())) {
    publish_soon();
  } else if (members_.has(node)) {
    send_roster(node);  // the connection is new
  }
}

void ControlManager::removed(NodeId node) {
  set_path(node, wire::NodeStatus::TLS);
  if (members_.remove(node, clock_.now())) publish_soon();
}

void ControlManager::publish_soon() {
  if (tasks_ == nullptr || std::exchange(is_publishing_, true)) return;
  tasks_->spawn("publish the roster of the daemons", publish_when_due());
}

asio::awaitable<void> ControlManager::publish_when_due() {
  co_await clock_.sleep_until(members_.due().value_or(clock_.now()));
  is_publishing_ = false;
  if (members_.due()) publish();
}

void ControlManager::publish() {
  control::MemberAddress own;
  own.signs = true;
  own.main = network_.address();
  own.main.bytes = {0, 0, 0, 0, own.main.bytes[4], own.main.bytes[5]};  // nodes know the host
  auto roster = members_.make(++generation_, random_number<std::uint64_t>(), own);
  if (roster.members.empty()) return leave();
  roster.fanout = gang::Tree::narrowest_fanout(control::Positions(roster).count(), most_fanout_);
  secret_ = {random_number<std::uint64_t>(), random_number<std::uint64_t>()};
  const control::RosterKeys all(roster, secret_);
  const auto frame = proto::encode_frame(control::to_wire(roster));
  for (const NodeId node : links_.connected()) {
    if (!members_.has(node)) continue;
    send_keys(node, roster, all);
    links_.send_shared(node, frame);
  }
  log_info("Published roster of the daemons", kv("generation", roster.generation),
           kv("members", members_.count()));
  auto keys = all.of(control::kHeadRank);
  const auto joined = network_.join(std::move(roster), control::kHeadRank, std::move(keys));
  if (!joined) {
    log_error("Cannot join the PM network of the daemons", kv("err", joined.error()));
  }
  roster_changed();
}

void ControlManager::leave() {
  network_.leave();
  roster_changed();
}

void ControlManager::roster_changed() {
  heartbeats_.roster_changed();
  timetables_.roster_changed();
}

void ControlManager::set_timetable(NodeId node, const base::SetTimetable& message) {
  const std::string timetable(proto::encode(base::HeadToNode(message)).payload);
  unpublished_[timetable].push_back(control::rank_of_node(node.value()));
}

void ControlManager::publish_timetables() {
  if (!unpublished_.empty()) timetables_.publish(std::exchange(unpublished_, {}));
}

void ControlManager::hear(const control::HeadHeartbeats::News& news) {
  gang::RelayedHeartbeats relayed_heartbeats;
  for (const std::uint32_t rank : news.alive) {
    relayed_heartbeats.alive.push_back(control::node_of_rank(rank));
    set_path(relayed_heartbeats.alive.back(), wire::NodeStatus::PM);
  }
  for (const std::uint32_t rank : news.silent) {
    relayed_heartbeats.silent.push_back(control::node_of_rank(rank));
    set_path(relayed_heartbeats.silent.back(), wire::NodeStatus::TLS, "not heard over PM");
  }
  if (news.deaf) relayed_heartbeats.deaf.push_back(control::node_of_rank(*news.deaf));
  if (news.hearing) relayed_heartbeats.hearing.push_back(control::node_of_rank(*news.hearing));
  relayed_heartbeats.silent_for = gang::BeatTiming{}.silent_after();
  if (on_relayed_heartbeats_) on_relayed_heartbeats_(relayed_heartbeats);
}

// An older node would not know the frame.
void ControlManager::send_keys(NodeId node, const control::Roster& roster,
                               const control::RosterKeys& keys) {
  const std::uint32_t rank = control::rank_of_node(node.value());
  if (!roster.has(rank) || !roster.members[rank].signs) return;
  links_.send(node, keys.of(rank).to_wire(roster.generation));
}

void ControlManager::send_roster(NodeId node) {
  if (!network_.is_joined()) return;
  send_keys(node, network_.roster(), control::RosterKeys(network_.roster(), secret_));
  links_.send(node, control::to_wire(network_.roster()));
}

void ControlManager::on_message(std::uint32_t source, const control::Message& message) {
  if (!heartbeats_.handle(source, message)) timetables_.handle(source, message);
}

}  // namespace score::head
