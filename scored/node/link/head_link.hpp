// Manages the node's connection to the head, and reconnects after a loss.
#pragma once

#include "base/async/alarm.hpp"
#include "base/async/backoff.hpp"
#include "base/async/clock.hpp"
#include "base/limits.hpp"
#include "base/result.hpp"
#include "proto/transport/connection.hpp"
#include "proto/transport/tls_connection.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace score::node {

class HeadLink {
 public:
  // If the head sends nothing for this time after a question, the node tries a new connection.
  static constexpr Duration kSilenceLimit = std::chrono::seconds{4};

  struct Handlers {
    std::function<void()> connected;            // authenticated; nothing was sent yet
    std::function<void(proto::InFrame)> frame;  // while connected
    std::function<void()> disconnected;         // once per connected()
    std::function<void()> beat;                 // send a heartbeat
  };

  struct Target {
    std::string node_name;
    proto::TcpEndpoint head;
  };

  // `clock` and `tls` must outlive the link.
  HeadLink(asio::any_io_executor io, const proto::TlsContext& tls, Clock& clock, Target target,
           Handlers handlers);

  // Connects, reads and reconnects until the task is cancelled.
  asio::awaitable<void> run();

  // Must be called when the head has welcomed the node. The head then knows the attempts, so their
  // frames may flow. bounds_exchange: its NodeWelcome.bounded_exchange.
  void set_greeted(bool bounds_exchange = false) {
    greeted_ = true;
    bounds_exchange_ = bounds_exchange;
  }

  [[nodiscard]] bool is_greeted() const { return greeted_; }

  [[nodiscard]] bool bounds_exchange() const { return bounds_exchange_; }

  // Returns how often it was connected. A waiting task detects a new connection by a change.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

  // Returns false if there is no connection. The message is then dropped, and the next hello
  // repeats reports.
  bool send(proto::FrameType type, std::string_view payload);

  template <class Message>
  bool send(const Message& message) {
    return send(proto::frame_type<Message>(), message.SerializeAsString());
  }

  // Returns when the head has welcomed the node and the send queue has room. A reader of other
  // peers that calls this before each frame slows its peer down instead of filling memory.
  asio::awaitable<void> ready();
  // Returns true if the head has received everything that was sent before. Returns false if the
  // connection broke in the meantime, so that the head may not have received it.
  asio::awaitable<bool> confirm();
  // Must be called when a heartbeat asks the head for a reply.
  void set_asked();
  // Must be called when the head has answered the heartbeat that was sent at this time.
  void set_answered(TimePoint sent);
  // Returns true if nothing has arrived for kSilenceLimit since a heartbeat asked for a reply. The
  // head or the route to it is gone, or the head is only late.
  [[nodiscard]] bool is_silent() const;
  // Returns true if even the head's host has not acknowledged what was sent, so that nothing
  // arrives from there.
  [[nodiscard]] bool hears_nothing() const;
  // Replaces the connection if a new one can be made and the old one is still silent then. Until
  // then the old one is kept, because the head ends the jobs of nodes whose connection breaks. Only
  // one replacement runs at a time.
  asio::awaitable<void> replace_if_silent();
  // Closes this connection and logs the reason; run() then reconnects.
  void drop(const std::string& why);
  // Sets the address of the head in charge, with two heads. A connection to the other head is
  // closed at once, so that its frames are no longer obeyed.
  void set_head(const proto::TcpEndpoint& head);

  // Prevents connections before the first set_head(), with two heads.
  void await_head() { is_known_ = false; }

 private:
  asio::awaitable<void> serve();
  void report(const Error& error);

  const proto::TlsContext& tls_;
  Clock& clock_;
  Target target_;
  Handlers handlers_;
  Backoff backoff_;
  bool is_known_ = true;       // the address of the head in charge is known
  std::uint64_t targets_ = 0;  // counts set_head()
  Alarm retry_;
  std::shared_ptr<proto::Connection> connection_;
  std::shared_ptr<proto::Connection> replacement_;
  bool is_replacing_ = false;
  bool greeted_ = false;
  bool bounds_exchange_ = false;
  std::uint64_t generation_ = 0;
  // The time of the first question since the last frame: a heartbeat, or the hello.
  std::optional<TimePoint> asked_;
  TimePoint answered_{};       // newest heartbeat that was answered
  asio::steady_timer answer_;  // at infinity; cancelled when answered_ or the connection changes
  std::string last_error_;     // logs an outage only once
};

}  // namespace score::node
