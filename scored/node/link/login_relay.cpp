#include "scored/node/link/login_relay.hpp"

#include "base/async/timeout.hpp"
#include "base/limits.hpp"
#include "proto/convert/convert.hpp"

#include <algorithm>
#include <utility>

namespace score::node {

namespace {

constexpr std::size_t kUnsentBytes = 1 * limits::kMiB;  // above this, its source is not read
constexpr mode_t kForEverybody = 0666;
// These are for two heads, where clients wait for limits::kHandshakeDeadline.
constexpr Duration kTakeOver = 4s;
constexpr Duration kHeadAnswers = 2s;
constexpr Duration kTryAgain = 100ms;

asio::awaitable<void> refuse(std::shared_ptr<proto::Connection> client, std::string why) {
  wire::Failed failed;
  failed.mutable_error()->set_text(std::move(why));
  proto::send(*client, failed);
  co_await client->drained(1);
  client->close();
}

}  // namespace

proto::ConnectionLimits LoginRelay::connection_limits() {
  proto::ConnectionLimits chosen;
  chosen.write_queue_bytes = 2 * limits::kMaxPeerQueueBytes;
  chosen.write_deadline = limits::kWriteDeadline;
  chosen.header_deadline = limits::kHeaderDeadline;
  chosen.frame_deadline = limits::kFrameDeadline;
  return chosen;
}

LoginRelay::LoginRelay(Parts parts, proto::TcpEndpoint head)
    : parts_(std::move(parts)), head_(std::move(head)) {}

Status LoginRelay::open(const std::string& path) {
  auto listener = proto::UnixListener::open(parts_.io, path, kForEverybody, connection_limits());
  if (!listener) return listener.error();
  adopt(*std::move(listener));
  return {};
}

void LoginRelay::adopt(proto::UnixListener listener) {
  listener_.emplace(std::move(listener));
  parts_.tasks.spawn("accept commands", accept());
}

void LoginRelay::set_head(const proto::TcpEndpoint& head) {
  head_ = head;
  for (const ConnectionPtr& link : std::exchange(links_, {})) link->close();
}

void LoginRelay::close() {
  if (listener_) listener_->close();
}

asio::awaitable<void> LoginRelay::accept() {
  for (;;) {
    auto peer = co_await listener_->accept();
    if (!peer && (peer.error().is(Errc::Closed) || peer.error().is(Errc::Cancelled))) co_return;
    if (peer) parts_.tasks.spawn("carry a command", serve(*std::move(peer)));
  }
}

// Carries the frames of one direction until it ends; frames that were read before are still
// delivered. `sender` bounds the accepted frames, and the head checks the real identity. A client
// that watches a job may stop reading for any time, as at the head.
asio::awaitable<void> LoginRelay::carry(ConnectionPtr from, ConnectionPtr to, proto::Role sender) {
  for (;;) {
    auto frame = co_await from->read(sender);
    if (!frame || !to->send(frame->type, frame->payload)) break;
    if (frame->type == proto::FrameType::Attach) from->disable_write_deadline();
    if (to->queued_bytes() > kUnsentBytes) co_await to->drained(kUnsentBytes);
  }
  co_await to->drained(1);
  to->close();
  from->close();
}

struct LoginRelay::Presence {
  Presence(LoginRelay& relay_in, UserId user_in) : relay(relay_in), user(user_in) {
    relay.counts_.take(user);
    PerUserPtr& held = relay.of_user_[user];
    if (!held) held = std::make_shared<PerUser>();
    of_user = held;
  }

  // Charges all bytes that this daemon holds for the connection to the user.
  void charge(proto::Connection& connection) const {
    connection.charge_to({of_user, &of_user->incoming}, {of_user, &of_user->outgoing});
  }

  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  ~Presence() {
    relay.counts_.give_back(user);
    if (relay.counts_.taken_by(user) == 0) relay.of_user_.erase(user);
  }

  LoginRelay& relay;
  UserId user;
  PerUserPtr of_user;
};

// A command says what it is at once. One that does not has no connection to the head, and gives way
// to others.
asio::awaitable<Result<proto::InFrame>> LoginRelay::first_frame(UserId user, ConnectionPtr client) {
  const std::uint64_t id = next_silent_++;
  silent_.emplace(id, std::pair(user, client));
  const TimePoint deadline = parts_.clock.now() + limits::kHandshakeDeadline;
  auto first = co_await with_deadline(parts_.clock, deadline, client->read(proto::Role::Root));
  silent_.erase(id);
  co_return first;
}

// Closes the oldest silent connection, of the user whose share is full, else of any. Returns false
// if there is none.
bool LoginRelay::close_silent(UserId user) {
  const bool is_of_user = counts_.has_all(user);
  const auto oldest = std::ranges::find_if(
      silent_, [&](const auto& entry) { return !is_of_user || entry.second.first == user; });
  if (oldest == silent_.end()) return false;
  const ConnectionPtr connection = std::move(oldest->second.second);
  silent_.erase(oldest);
  connection->close();
  return true;
}

// Connects to the head. With two heads, a command waits while the second head takes over.
asio::awaitable<Result<LoginRelay::ConnectionPtr>> LoginRelay::reach_head() {
  const TimePoint end = parts_.clock.now() + kTakeOver;
  const bool has_two_heads = static_cast<bool>(why_not_);
  const Duration timeout = has_two_heads ? kHeadAnswers : limits::kHandshakeDeadline;
  for (;;) {
    const std::string why = has_two_heads ? why_not_() : std::string();
    Error error(Errc::WrongState, why);
    if (why.empty()) {
      const proto::TcpEndpoint where = head_;
      auto head = co_await proto::tls_connect(parts_.tls, where, timeout, connection_limits());
      const bool is_current = format_endpoint(head_) == format_endpoint(where);
      if (head && is_current) co_return head->connection;
      if (head) {  // the other head has taken over in the meantime
        head->connection->close();
        continue;
      }
      error = Error(Errc::Closed, fmt::format("cannot reach the head at {}: {}",
                                              format_endpoint(where), head.error().message()));
    }
    if (!has_two_heads || parts_.clock.now() >= end) co_return error;
    co_await parts_.clock.sleep_for(kTryAgain);
  }
}

asio::awaitable<void> LoginRelay::serve(proto::UnixPeer peer) {
  const ConnectionPtr client = peer.connection;
  const UserId user = peer.credentials.uid;
  if (!counts_.has_place(user) && !close_silent(user)) {
    if (limiter_.allow(parts_.clock.now())) {
      log_warning("Refused a command: too many commands", kv("uid", user),
                  kv("commands", counts_.taken()), kv("suppressed", limiter_.take_suppressed()));
    }
    co_await refuse(client, "too many commands run on this login node; try again");
    co_return;
  }
  const Presence presence(*this, user);
  presence.charge(*client);
  const auto first = co_await first_frame(user, client);
  if (!first) co_return client->close();
  const TimePoint turn = pace_.reserve(user, 1, parts_.clock.now());
  if (turn > parts_.clock.now()) co_await parts_.clock.sleep_until(turn);
  const auto head = co_await reach_head();
  if (!head) {
    co_await refuse(client, head.error().message());
    co_return;
  }
  const ConnectionPtr link = *head;
  presence.charge(*link);
  wire::LoginHello hello;
  hello.set_user(user.value());
  if (parts_.prove) parts_.prove(peer.credentials, hello);
  proto::send(*link, hello);
  link->send(first->type, first->payload);
  links_.insert(link);
  parts_.tasks.spawn("carry answers", carry(link, client, proto::Role::Head));
  co_await carry(client, link, proto::Role::Root);
  links_.erase(link);
}

}  // namespace score::node
