#include "scored/head/process/standby.hpp"

#include "base/limits.hpp"
#include "base/os/log.hpp"
#include "base/systemd/notify.hpp"
#include "proto/transport/setup_token.hpp"
#include "proto/transport/unix_connection.hpp"

#include <algorithm>
#include <csignal>
#include <span>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace score::head {
namespace {

constexpr Duration kStandbyStatusPeriod = 1s;

// These are the limits of a head's listener for nodes, because the connections stay open when this
// head is elected.
proto::ConnectionLimits peer_limits(const HeadConfig& config) {
  proto::ConnectionLimits limits;
  limits.write_queue_bytes = 4 * limits::kMaxPeerQueueBytes;
  limits.write_deadline = config.write_timeout;
  limits.header_deadline = limits::kHeaderDeadline;
  limits.frame_deadline = limits::kFrameDeadline;
  return limits;
}

proto::Role role_of(std::string_view identity) {
  if (proto::is_setup_identity(identity)) return proto::Role::Setup;
  return proto::parse_head_identity(identity) ? proto::Role::Head : proto::Role::Node;
}

void log_failure(std::string_view task, const std::exception_ptr& exception) {
  log_error("Task failed", kv("task", task), kv("err", describe_exception(exception)));
}

}  // namespace

Standby::Standby(const Parts& parts)
    : parts_(parts),
      tasks_(parts.io.get_executor(), &log_failure),
      disk_(parts.io, 1),
      follower_({parts.clock, parts.election, disk_, parts.store,
                 parts.config.state_dir + "/jobs.db.incoming"},
                [this](const Error& error) { broken(error); }),
      relay_({parts.io.get_executor(), parts.election.tls(), parts.clock, tasks_},
             parts.election.other_endpoint()),
      page_({parts.io, parts.clock, tasks_, parts.config, parts.election}),
      ended_(parts.io, 1) {
  LeaderElection::Handlers handlers;
  handlers.store_term = [this](Epoch term) { store_term(term); };
  handlers.store_vote = [this](Epoch term) { store_vote(term); };
  handlers.take_charge = [this](Epoch term) { take_charge(term); };
  handlers.stand_down = [this](const std::string& why) { broken(Error(Errc::WrongState, why)); };
  handlers.can_follow = [this] { follower_.follow(); };
  handlers.other_lost = [this] { follower_.lost(); };
  handlers.log_frame = [this](const proto::InFrame& frame) { follower_.frame(frame); };
  parts_.election.handle(std::move(handlers));
}

Status Standby::open() {
  auto listener = proto::TcpListener::open(parts_.io.get_executor(), parts_.config.listen);
  if (!listener) return listener.error();
  listener_.emplace(*std::move(listener));
  relay_.ask_first([this]() -> std::string {
    if (parts_.election.is_other_in_charge()) return {};
    return "no head of the cluster is in charge at the moment, try again";
  });
  if (auto opened = open_commands(); !opened) return opened;
  // No step may fail from here on, because tasks run already.
  page_.start();
  parts_.election.set_dashboard(page_.url());
  return {};
}

Status Standby::open_commands() {
  if (!parts_.commands) return relay_.open(parts_.config.socket);
  auto adopted =
      proto::UnixListener::adopt(parts_.io.get_executor(), UniqueFd(::dup(*parts_.commands)),
                                 parts_.config.socket, node::LoginRelay::connection_limits());
  if (!adopted) return adopted.error();
  relay_.adopt(*std::move(adopted));
  return {};
}

asio::awaitable<Standby::End> Standby::run() {
  tasks_.spawn("accept nodes", accept());
  tasks_.spawn("signals", handle_signals());
  tasks_.spawn("service manager", feed_manager());
  notify_ready();
  co_await ended_.async_receive(asio::use_awaitable);
  listener_->close();
  relay_.close();
  page_.close();
  co_await tasks_.stop();
  co_return *how_;
}

void Standby::end(End how) {
  if (how_) return;
  how_ = how;
  ended_.try_send(boost::system::error_code());
}

void Standby::broken(const Error& error) {
  log_error("Restarting the standby", kv("err", error));
  end(End::Failed);
}

// ---- election: the disk thread works in order, so shipped changes are stored first --------------

void Standby::store_term(Epoch term) {
  auto result = std::make_shared<Status>();
  disk_.run([this, result, term] { *result = parts_.store.raise_incarnation(term); },
            [this, result, term] {
              if (!*result) return broken(result->error());
              parts_.election.term_stored(term);
            });
}

void Standby::store_vote(Epoch term) {
  auto result = std::make_shared<Status>();
  disk_.run([this, result, term] { *result = parts_.store.store_vote(parts_.config.self, term); },
            [this, result, term] {
              if (!*result) return broken(result->error());
              parts_.election.vote_stored(term);
            });
}

void Standby::take_charge(Epoch term) {
  auto result = std::make_shared<Status>();
  auto begin = [this, result, term] {
    const Change leader = SaveSetting{std::string(kLogHead), std::to_string(parts_.config.self)};
    *result = parts_.store.apply(std::span(&leader, 1));
    if (*result) *result = parts_.store.begin_log(term);
  };
  disk_.run(std::move(begin), [this, result] {
    if (!*result) return broken(result->error());
    end(End::Elected);
  });
}

// ---- peers --------------------------------------------------------------------------------------

asio::awaitable<void> Standby::accept() {
  for (;;) {
    auto fd = co_await listener_->accept();
    if (!fd && (fd.error().is(Errc::Closed) || fd.error().is(Errc::Cancelled))) co_return;
    if (!fd) continue;
    half_open_.make_room();
    tasks_.spawn("greet peer", serve(*std::move(fd)));
  }
}

asio::awaitable<void> Standby::serve(UniqueFd fd) {
  proto::HalfOpen::Place place(half_open_, fd.get());
  auto peer = co_await proto::tls_accept(parts_.election.server_tls(), std::move(fd),
                                         limits::kHandshakeDeadline, peer_limits(parts_.config));
  if (!peer) co_return;
  const auto connection = peer->connection;
  place.set_connection(connection);
  auto first = co_await connection->read(role_of(peer->name));
  if (!first) co_return;
  LeaderElection::Arrival arrival{connection, peer->name, *std::move(first)};
  parts_.election.take(std::move(arrival));
}

asio::awaitable<void> Standby::handle_signals() {
  asio::signal_set signals(parts_.io, SIGTERM, SIGINT, SIGHUP);
  for (;;) {
    const int number = co_await signals.async_wait(asio::use_awaitable);
    if (number != SIGHUP) break;
    log_notice("Ignored SIGHUP: a standby reads its configuration when it takes charge");
  }
  end(End::Stopped);
}

asio::awaitable<void> Standby::feed_manager() {
  const Duration period =
      std::min(watchdog_period().value_or(kStandbyStatusPeriod), kStandbyStatusPeriod);
  std::string sent;
  for (;;) {
    notify_watchdog();
    if (std::string now = parts_.election.summary(); now != sent) {
      notify_status(now);
      log_notice("Changed state", kv("state", now));
      sent = std::move(now);
    }
    co_await parts_.clock.sleep_for(period);
  }
}

}  // namespace score::head
