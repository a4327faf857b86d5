#include "scored/node/link/head_link.hpp"

#include "base/limits.hpp"
#include "base/os/log.hpp"
#include "proto/frames/errc.hpp"

#include <algorithm>
#include <functional>

namespace score::node {

namespace {

constexpr std::size_t kQueuedBytes = 1 * limits::kMiB;  // above this, shepherds are not read
// TCP retransmits after 200 ms if there is no acknowledgement; a host acknowledges within 40 ms.
constexpr Duration kUnanswered = std::chrono::milliseconds{250};
constexpr Duration kParkedPoll = std::chrono::milliseconds{20};

proto::ConnectionLimits connection_limits() {
  proto::ConnectionLimits chosen;
  chosen.write_queue_bytes = limits::kMaxPeerQueueBytes;
  chosen.write_deadline = limits::kWriteDeadline;
  chosen.frame_deadline = limits::kFrameDeadline;
  return chosen;
}

}  // namespace

HeadLink::HeadLink(asio::any_io_executor io, const proto::TlsContext& tls, Clock& clock,
                   Target target, Handlers handlers)
    : tls_(tls),
      clock_(clock),
      target_(std::move(target)),
      handlers_(std::move(handlers)),
      backoff_(limits::kReconnectMin, limits::kReconnectMax,
               std::hash<std::string>()(target_.node_name)),
      retry_(io, clock),
      answer_(std::move(io), asio::steady_timer::time_point::max()) {}

asio::awaitable<void> HeadLink::run() {
  for (;;) {
    while (!is_known_) co_await retry_.sleep_until(clock_.now() + limits::kReconnectMax);
    const std::uint64_t target = targets_;
    auto connected = co_await proto::tls_connect(tls_, target_.head, limits::kHandshakeDeadline,
                                                 connection_limits());
    if (target != targets_) continue;
    if (!connected) report(connected.error());
    if (connected) connection_ = std::move(connected->connection);
    while (connection_ != nullptr) {
      co_await serve();
      connection_ = std::exchange(replacement_, nullptr);
    }
    if (target != targets_) continue;
    co_await retry_.sleep_until(clock_.now() + backoff_.next());
  }
}

void HeadLink::set_head(const proto::TcpEndpoint& head) {
  is_known_ = true;
  target_.head = head;
  ++targets_;
  backoff_.reset();
  last_error_.clear();
  if (replacement_ != nullptr) std::exchange(replacement_, nullptr)->close();
  if (connection_ != nullptr) {
    drop(fmt::format("the head in charge is {}", proto::format_endpoint(head)));
    greeted_ = false;
  }
  retry_.at(clock_.now());
}

asio::awaitable<void> HeadLink::serve() {
  ++generation_;
  greeted_ = false;
  asked_ = clock_.now();
  const auto connection = connection_;
  const std::uint64_t target = targets_;
  handlers_.connected();
  for (;;) {
    auto frame = co_await connection->read(proto::Role::Head);
    if (target != targets_) break;  // the frame is from a head that is no longer in charge
    if (!frame) {
      report(frame.error());
      break;
    }
    asked_.reset();
    if (greeted_) {
      backoff_.reset();
      last_error_.clear();
    }
    handlers_.frame(*std::move(frame));
  }
  connection->close();
  connection_ = nullptr;
  greeted_ = false;
  answer_.cancel();
  handlers_.disconnected();
}

void HeadLink::report(const Error& error) {
  const std::string text = error.message();
  if (text == last_error_) return;
  last_error_ = text;
  log_warning("Cannot connect to the head; retrying", kv("head", format_endpoint(target_.head)),
              kv("err", text));
}

bool HeadLink::send(proto::FrameType type, std::string_view payload) {
  return connection_ != nullptr && connection_->send(type, payload);
}

asio::awaitable<void> HeadLink::ready() {
  for (;;) {
    while (!greeted_ || connection_ == nullptr) co_await clock_.sleep_for(kParkedPoll);
    if (connection_->queued_bytes() < kQueuedBytes) co_return;
    const auto connection = connection_;
    co_await connection->drained(kQueuedBytes);
  }
}

asio::awaitable<bool> HeadLink::confirm() {
  const std::uint64_t generation = generation_;
  const TimePoint asked = clock_.now();
  handlers_.beat();
  while (greeted_ && generation_ == generation && answered_ < asked) {
    [[maybe_unused]] auto [cancelled] = co_await answer_.async_wait(kNoThrow);
  }
  co_return greeted_&& generation_ == generation;
}

void HeadLink::set_asked() {
  if (!asked_) asked_ = clock_.now();
}

void HeadLink::set_answered(TimePoint sent) {
  answered_ = std::max(answered_, sent);
  answer_.cancel();
}

bool HeadLink::is_silent() const {
  return connection_ != nullptr && asked_ && clock_.now() - *asked_ >= kSilenceLimit;
}

bool HeadLink::hears_nothing() const {
  return connection_ != nullptr && connection_->unanswered_for() >= kUnanswered;
}

asio::awaitable<void> HeadLink::replace_if_silent() {
  if (std::exchange(is_replacing_, true)) co_return;
  const std::uint64_t target = targets_;
  auto connected = co_await proto::tls_connect(tls_, target_.head, limits::kHandshakeDeadline,
                                               connection_limits());
  is_replacing_ = false;
  if (!connected) co_return;
  if (!is_silent() || target != targets_) {
    connected->connection->close();
    co_return;
  }
  replacement_ = std::move(connected->connection);
  drop(fmt::format("silent for {}", format_duration(kSilenceLimit)));
}

void HeadLink::drop(const std::string& why) {
  log_warning("Closed the connection to the head", kv("why", why));
  if (connection_ != nullptr) connection_->close();
}

}  // namespace score::node
