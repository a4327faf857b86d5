#include "scored/head/process/server.hpp"

#include "base/limits.hpp"
#include "base/os/log.hpp"
#include "base/systemd/passed_socket.hpp"
#include "proto/frames/parse.hpp"
#include "proto/transport/setup_token.hpp"
#include "scored/head/config/version.hpp"
#include "scored/head/nodes/node_session.hpp"

#include <algorithm>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace score::head {
namespace {

constexpr std::size_t kOwnDescriptors = 64;  // store, listeners, epoll, standard streams ...
constexpr Duration kIdleCheckPeriod = 2s;

proto::ConnectionLimits client_limits(const HeadConfig& config) {
  proto::ConnectionLimits limits;
  limits.write_queue_bytes = limits::kMaxClientQueueBytes;
  limits.write_deadline = config.write_timeout;
  limits.header_deadline = limits::kHeaderDeadline;
  limits.frame_deadline = limits::kFrameDeadline;
  return limits;
}

// A node that reads nothing is closed no earlier than one that is silent.
proto::ConnectionLimits node_limits(const HeadConfig& config) {
  proto::ConnectionLimits limits;
  limits.write_queue_bytes = 2 * limits::kMaxPeerQueueBytes;  // a fence may be as large as one
  limits.write_deadline = std::max<Duration>(config.write_timeout, config.node_timeout);
  limits.header_deadline = limits::kHeaderDeadline;
  limits.frame_deadline = limits::kFrameDeadline;
  return limits;
}

asio::awaitable<void> close_after_last(std::shared_ptr<proto::Connection> connection) {
  co_await connection->drained(1);
  connection->close();
}

}  // namespace

ServerLimits server_limits(std::size_t nodes) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  const std::size_t all = files.rlim_cur == RLIM_INFINITY
                              ? limits::kMaxConnections * 4
                              : static_cast<std::size_t>(files.rlim_cur);
  const std::size_t fixed = kOwnDescriptors + nodes + limits::kReservedDescriptors;
  const std::size_t left = all > fixed ? all - fixed : 16;
  ServerLimits chosen;
  chosen.half_open_nodes = std::min(limits::kMaxUnauthenticated, left / 4);
  chosen.clients = std::min(limits::kMaxConnections, left - chosen.half_open_nodes);
  chosen.clients_per_user =
      std::min(limits::kMaxConnectionsPerUser, std::max<std::size_t>(chosen.clients / 2, 1));
  chosen.spare_clients = limits::kReservedDescriptors / 2;
  return chosen;
}

Server::Server(asio::io_context& io, Clock& clock, Head& head, ClientSession::Parts clients)
    : io_(io),
      clock_(clock),
      turns_(std::make_shared<Turns>(io.get_executor(), clock)),
      head_(head),
      for_clients_(std::move(clients)),
      for_nodes_(head.for_nodes()) {}

// Listens on the socket that the service manager has passed (scored-head.socket), else on its own.
Result<proto::UnixListener> Server::listen_for_commands(const HeadConfig& config) {
  const std::string& path = config.socket;
  const auto bounds = client_limits(config);
  if (!passed_) {
    auto passed = take_passed_socket(path);
    if (!passed) return passed.error();
    passed_ = *std::move(passed);
  }
  if (!passed_) {
    return proto::UnixListener::open(io_.get_executor(), path, 0666, bounds);
  }
  return proto::UnixListener::adopt(io_.get_executor(), std::move(*passed_), path, bounds);
}

std::optional<proto::Key> Server::key_of(std::string_view identity) const {
  if (proto::parse_head_identity(identity)) {
    return election_ != nullptr ? election_->key_of(identity) : std::nullopt;
  }
  auto key = node_key_manager_->key_of(identity);
  return key ? key : setup_->key_of(identity, wall_now());
}

Status Server::open(const HeadConfig& config, const proto::KeyRing& ring, ServerLimits limits) {
  limits_ = limits;
  counts_ = ShareCounter<UserId>({shares::kClients.name, limits.clients, limits.clients_per_user});
  half_open_.set_limit(limits.half_open_nodes);
  ring_ = ring;
  node_key_manager_.emplace(
      NodeKeyManager::Parts{head_.config(), head_.links(), *ring_, head_.commits()},
      config.state_dir);
  if (auto loaded = node_key_manager_->load(); !loaded) return loaded;
  head_.set_node_faults(
      [this](const std::string& node) { return node_key_manager_->fault_of(node); });
  node_key_manager_->on_revoked([this](const std::string& node) { close_clients_of(node); });
  setup_.emplace(SetupManager::Parts{head_.config(), *ring_, node_key_manager_->keys(),
                                     head_.commits(), head_.lease()},
                 config.state_dir);
  tls_ = proto::TlsContext::server([this](std::string_view identity) { return key_of(identity); });
  auto commands = listen_for_commands(config);
  if (!commands) return commands.error();
  commands_.emplace(std::move(*commands));
  auto nodes = proto::TcpListener::open(io_.get_executor(), config.listen);
  if (!nodes) return nodes.error();
  nodes_.emplace(std::move(*nodes));
  return {};
}

void Server::start(TaskGroup& tasks) {
  tasks_ = &tasks;
  tasks.spawn("accept clients", accept_clients());
  tasks.spawn("accept nodes", accept_nodes());
  tasks.spawn("close idle clients", close_idle());
}

void Server::close() {
  if (commands_) commands_->close();
  if (nodes_) nodes_->close();
  for (const auto& [id, session] : clients_) session->close();
}

// ---- commands -----------------------------------------------------------------------------------

asio::awaitable<void> Server::accept_clients() {
  for (;;) {
    auto peer = co_await commands_->accept();
    if (!peer && (peer.error().is(Errc::Closed) || peer.error().is(Errc::Cancelled))) co_return;
    if (peer) admit(peer->credentials.uid, std::move(peer->connection), {});
  }
}

void Server::admit(UserId user, std::shared_ptr<proto::Connection> connection, Origin origin) {
  const auto whose = counts_.has_all(user) ? std::optional(user) : std::nullopt;
  const bool is_spare = !counts_.has_place(user) && !close_half_open(whose);
  if (is_spare && spare_ >= limits_.spare_clients) {
    if (limiter_.allow(clock_.now())) {
      log_warning("Refused client: too many connections", kv("uid", user),
                  kv("clients", clients_.size()), kv("suppressed", limiter_.take_suppressed()));
    }
    return;  // closes the connection
  }
  auto& budget = budgets_[user];
  if (!budget) budget = std::make_shared<UserBudget>();
  connection->charge_to({budget, &budget->incoming}, {budget, &budget->outgoing});
  ClientSession::Setup setup;
  setup.id = ClientId(next_client_);
  const auto role = origin.task ? proto::Role::OtherUser : head_.users().role(user, clock_.now());
  setup.peer = {user, role, head_.users().name(user, clock_.now()), std::move(origin.via),
                origin.task};
  setup.connection = std::move(connection);
  setup.budget = budget;
  setup.turns = turns_;
  setup.is_spare = is_spare;
  auto session = std::make_shared<ClientSession>(for_clients_, clock_, std::move(setup));
  tasks_->spawn("serve client", serve_client(std::move(session), user, is_spare));
}

// Many connections without a hello must not lock anyone out, so the oldest one is closed: that of
// the user whose share is full, else of any.
bool Server::close_half_open(std::optional<UserId> user) {
  for (const auto& [id, session] : clients_) {
    if ((user && session->user() != *user) || !session->is_half_open()) continue;
    session->close();
    return true;
  }
  return false;
}

void Server::close_clients_of(const std::string& login_node) {
  for (const auto& [id, session] : clients_) {
    if (session->via() == login_node) session->close();
  }
}

// Presence counts a client in, and out however its task ends.
struct Server::Presence {
  Presence(Server& server_in, std::shared_ptr<ClientSession> session, UserId user_in, bool spare_in)
      : server(server_in), user(user_in), is_spare(spare_in), id(server.next_client_++) {
    server.clients_.emplace(id, std::move(session));
    server.counts_.take(user);
    if (is_spare) ++server.spare_;
  }

  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  // The user's budget is dropped with the last connection only if it is full again, so opening a
  // new connection per request does not get around the limit.
  ~Presence() {
    server.clients_.erase(id);
    if (is_spare) --server.spare_;
    server.counts_.give_back(user);
    if (server.counts_.taken_by(user) > 0) return;
    const auto budget = server.budgets_.find(user);
    const bool is_full =
        budget->second->requests.try_take(server.clock_.now(), limits::kRequestBurst);
    if (is_full) server.budgets_.erase(budget);
  }

  Server& server;
  UserId user;
  bool is_spare;
  std::uint64_t id;
};

asio::awaitable<void> Server::serve_client(std::shared_ptr<ClientSession> session, UserId user,
                                           bool is_spare) {
  const Presence presence(*this, session, user, is_spare);
  co_await session->run();
}

asio::awaitable<void> Server::close_idle() {
  for (;;) {
    co_await clock_.sleep_for(kIdleCheckPeriod);
    const TimePoint now = clock_.now();
    for (const auto& [id, session] : clients_) {
      if (session->is_idle(now)) session->close();
    }
  }
}

// ---- nodes --------------------------------------------------------------------------------------

bool Server::is_login_node(const std::string& node) const {
  const auto& trusted = head_.config().login_nodes;
  return std::ranges::find(trusted, node) != trusted.end();
}

// Returns what the user of a refused command reads. Root of a login node is not root of the
// cluster, unless the head itself runs as root.
std::string Server::refusal_of(const std::string& node) const {
  if (is_login_node(node)) {
    return fmt::format("root of {} is not root of this cluster; use the head's host", node);
  }
  const auto place = head_.links().find(node);
  const bool is_old = place && !head_.links().link(*place).vitals.takes_attempt_secrets;
  return fmt::format(
      "{} is not a login node of this cluster; run the command on one that is{}", node,
      is_old ? fmt::format(", or install release {} on {} to use it in jobs", kVersion, node)
             : ", or in a job on it");
}

asio::awaitable<void> Server::accept_nodes() {
  for (;;) {
    auto fd = co_await nodes_->accept();
    if (!fd && (fd.error().is(Errc::Closed) || fd.error().is(Errc::Cancelled))) co_return;
    if (!fd) continue;
    half_open_.make_room();
    tasks_->spawn("serve node", serve_node(std::move(*fd)));
  }
}

asio::awaitable<void> Server::serve_node(UniqueFd fd) {
  std::optional<proto::HalfOpen::Place> place(std::in_place, half_open_, fd.get());
  auto peer = co_await proto::tls_accept(*tls_, std::move(fd), limits::kHandshakeDeadline,
                                         node_limits(head_.config()));
  if (!peer) {
    if (limiter_.allow(clock_.now())) {
      log_warning("Refused node", kv("err", peer.error()),
                  kv("suppressed", limiter_.take_suppressed()));
    }
    co_return;
  }
  place->set_connection(peer->connection);
  if (proto::is_setup_identity(peer->name)) {
    place.reset();
    co_return co_await setup_->serve(peer->name, peer->connection, clock_);
  }
  if (proto::parse_head_identity(peer->name)) co_return co_await serve_head(*std::move(peer));
  const auto identity = proto::parse_node_identity(peer->name);
  if (!identity) co_return;
  peer->name = identity->node;
  const auto node = head_.links().find(peer->name);
  if (!node) co_return;
  co_await note_use(*identity);
  // The key may have been revoked during the handshake.
  if (!node_key_manager_->keys().accepts(*identity)) co_return;
  auto first = co_await peer->connection->read(proto::Role::Node);
  place.reset();
  if (first && first->type == proto::FrameType::LoginHello) {
    admit_login(*peer, *first);
    co_return;
  }
  if (first && first->type == proto::FrameType::WitnessHello && election_ != nullptr) {
    LeaderElection::Arrival arrival{peer->connection, peer->name, *std::move(first)};
    election_->take(std::move(arrival));
    co_return;
  }
  NodeSession session(for_nodes_, clock_, *node, std::move(peer->connection));
  co_await session.run(std::move(first));
}

// Returns when the log has that the node uses this key.
asio::awaitable<void> Server::note_use(proto::NodeIdentity identity) {
  using Channel = asio::experimental::channel<void(boost::system::error_code)>;
  const auto is_noted = std::make_shared<Channel>(io_, 1);
  node_key_manager_->used(identity,
                          [is_noted] { is_noted->try_send(boost::system::error_code()); });
  co_await is_noted->async_receive(asio::use_awaitable);
}

// Serves the other head: its log and leases, or a command of its host, whose user the kernel has
// identified. The other head has the cluster key, so its root is root here.
asio::awaitable<void> Server::serve_head(proto::TlsPeer peer) {
  auto first = co_await peer.connection->read(proto::Role::Head);
  if (!first) co_return;
  if (first->type != proto::FrameType::LoginHello) {
    LeaderElection::Arrival arrival{peer.connection, peer.name, *std::move(first)};
    election_->take(std::move(arrival));
    co_return;
  }
  const auto message = proto::parse<wire::LoginHello>(*first);
  if (!message) co_return peer.connection->close();
  admit(UserId(message->user()), peer.connection, {.via = "the other head"});
}

// Handles a command on a node, whose daemon has asked the kernel for the user. A command on a login
// node has the same rights as on the head's host. Any other node is not believed about users: it
// must prove that a task there has started the command, which may then act on its own job.
void Server::admit_login(const proto::TlsPeer& node, const proto::InFrame& hello) {
  const auto message = proto::parse<wire::LoginHello>(hello);
  if (!message) return node.connection->close();
  const UserId user(message->user());
  const auto place = head_.links().find(node.name);
  const bool is_foreign_root = user == UserId(0) && geteuid() != 0;
  if (!is_foreign_root && is_login_node(node.name)) {
    return admit(user, node.connection, {.via = node.name});
  }
  if (!is_foreign_root && place && head_.secrets().proves(*place, *message)) {
    const TaskPlace task{AttemptId(message->attempt()), *place};
    return admit(user, node.connection, {.via = node.name, .task = task});
  }
  const char* why = is_login_node(node.name) ? "root of a login node" : "not a login node";
  if (limiter_.allow(clock_.now())) {
    log_warning("Refused command", kv("why", why), kv("node", node.name), kv("uid", user),
                kv("attempt", message->attempt()), kv("suppressed", limiter_.take_suppressed()));
  }
  wire::Failed failed;
  failed.mutable_error()->set_text(refusal_of(node.name));
  proto::send(*node.connection, failed);
  tasks_->spawn("refuse a command", close_after_last(node.connection));
}

}  // namespace score::head
