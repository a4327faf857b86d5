// The node's connection to the head: reconnects after a loss.
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
  // A head that says nothing for this time after it was asked is called anew.
  static constexpr Duration kSilenceLimit = std::chrono::seconds{4};

  struct Handlers {
    std::function<void()> connected;            // authenticated; nothing was sent yet
    std::function<void(proto::InFrame)> frame;  // while connected
    std::function<void()> disconnected;         // once for each connected
    std::function<void()> beat;                 // send a heartbeat
  };

  struct Target {
    std::string node_name;
    proto::TcpEndpoint head;
  };

  // `clock` and `tls` outlive the link.
  HeadLink(asio::any_io_executor io, const proto::TlsContext& tls, Clock& clock, Target target,
           Handlers handlers);

  // Connects, reads, connects again, until the task is cancelled.
  asio::awaitable<void> run();

  // The head has welcomed the node: it knows the attempts, so their frames may flow.
  void set_greeted() { greeted_ = true; }

  [[nodiscard]] bool is_greeted() const { return greeted_; }

  // How often it was connected; changes show a waiting task that the connection is a new one.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

  // False if there is no connection: the message is dropped, and the next hello repeats reports.
  bool send(proto::FrameType type, std::string_view payload);

  template <class Message>
  bool send(const Message& message) {
    return send(proto::frame_type<Message>(), message.SerializeAsString());
  }

  // Returns when the head has welcomed the node and the send queue has room. A reader of other
  // peers that calls this before each frame slows its peer down instead of filling memory.
  asio::awaitable<void> ready();
  // True: the head has received everything that was sent before. False: the connection broke
  // meanwhile, and it may not have.
  asio::awaitable<bool> confirm();
  // A heartbeat asks the head for a reply now.
  void set_asked();
  // The head answered the heartbeat that was sent at this time.
  void set_answered(TimePoint sent);
  // Nothing came over the connection for kSilenceLimit since a heartbeat asked for a reply: the
  // head or the way to it is gone, or it is only late.
  [[nodiscard]] bool is_silent() const;
  // What was sent has not even been acknowledged by the head's host: nothing comes from there.
  [[nodiscard]] bool hears_nothing() const;
  // Replaces the connection if a new one can be made and the old one is still silent then. Until
  // then the old one is kept: the head ends jobs of nodes whose connection breaks. One at a time.
  asio::awaitable<void> replace_if_silent();
  // Ends this connection, with the reason logged; another one is tried.
  void drop(const std::string& why);
  // The head in charge is there now, if there are two: the connection to another one ends at once,
  // so nothing more of that head is obeyed.
  void set_head(const proto::TcpEndpoint& head);

  // With two heads it does not connect before the first set_head().
  void await_head() { is_known_ = false; }

 private:
  asio::awaitable<void> serve();
  void report(const Error& error);

  const proto::TlsContext& tls_;
  Clock& clock_;
  Target target_;
  Handlers handlers_;
  Backoff backoff_;
  bool is_known_ = true;       // where the head in charge is
  std::uint64_t targets_ = 0;  // counts set_head()
  Alarm retry_;
  std::shared_ptr<proto::Connection> connection_;
  std::shared_ptr<proto::Connection> replacement_;
  bool is_replacing_ = false;
  bool greeted_ = false;
  std::uint64_t generation_ = 0;
  // The first question since the last frame: a heartbeat, or the hello.
  std::optional<TimePoint> asked_;
  TimePoint answered_{};       // newest heartbeat that was answered
  asio::steady_timer answer_;  // at infinity; cancelled when answered_ or the connection changes
  std::string last_error_;     // so that an outage is logged once
};

}  // namespace score::node
