#pragma once
// The shell of gang::Leadership: sends its questions to the nodes and to the other head, and takes
// their answers. Which head is in charge follows from them alone. Thread: the loop's.

#include "base/async/alarm.hpp"
#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "base/os/log.hpp"
#include "gang/leadership/leadership.hpp"
#include "proto/client.pb.h"
#include "proto/transport/connection.hpp"
#include "proto/transport/key_ring.hpp"
#include "proto/transport/tls_connection.hpp"
#include "scored/head/config/config.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace score::head {

class Charge {
 public:
  struct Parts {  // all outlive it
    asio::io_context& io;
    Clock& clock;
    TaskGroup& tasks;  // ... and are stopped before it is destroyed
    const HeadConfig& config;
    const proto::KeyRing& ring;
  };

  // What the process does about it: those of the standby first, then those of the head in charge.
  struct Handlers {
    std::function<void(Epoch term)> store_term;  // then term_stored()
    std::function<void(Epoch term)> take_charge;
    std::function<void(const std::string& why)> stand_down;
    // The other head is in charge and connected: its log can be followed.
    std::function<void()> can_follow;
    std::function<void()> other_lost;
    std::function<void(const proto::InFrame& frame)> log_frame;  // of the other head
    // What may be acknowledged may have changed.
    std::function<void()> advanced;
    std::function<void(TimePoint now)> tick;
  };

  Charge(const Parts& parts, gang::Leadership::Settings settings, gang::LogPosition position,
         Epoch term);

  void handle(Handlers handlers) { handlers_ = std::move(handlers); }

  // Of this head's web server, for the other one. Before start().
  void set_dashboard(std::string url) { dashboard_ = std::move(url); }

  // "http://head-b:8080": where the other head serves its dashboard; empty: nowhere, or unknown.
  [[nodiscard]] const std::string& other_dashboard() const { return other_dashboard_; }

  // Its timer, and the connection to the first head if this is the second one.
  void start();

  // A connection whose key and first frame a listener has read.
  struct Arrival {
    std::shared_ptr<proto::Connection> connection;
    std::string identity;  // as the handshake proved it
    proto::InFrame first;
  };

  // Witnesses and the other head are served; who wants the head in charge is told where it is.
  void take(Arrival arrival);
  // The key of a node, of the other head or of a setup token; for a listener of this process while
  // it is not in charge. Any text may be given.
  [[nodiscard]] std::optional<proto::Key> key_of(std::string_view identity) const;

  void term_stored(Epoch term);

  // As gang::Leadership's.
  void stored(gang::LogPosition position) { leadership_.stored(position); }

  void committed(std::uint64_t sequence) { leadership_.committed(sequence); }

  void follower_current(std::uint64_t sequence);

  void follower_stored(std::uint64_t sequence);

  void follower_lost();

  [[nodiscard]] std::uint64_t acknowledged() {
    return leadership_.acknowledged(parts_.clock.now());
  }

  [[nodiscard]] gang::LeadershipRole role() const { return leadership_.role(); }

  [[nodiscard]] gang::LogPosition position() const { return leadership_.position(); }

  [[nodiscard]] bool has_current_follower() const { return leadership_.has_current_follower(); }

  // The connection to the other head; nullptr: none.
  [[nodiscard]] const std::shared_ptr<proto::Connection>& other() const { return other_; }

  // It will be made anew.
  void drop_other(const std::string& why);

  // The other head is in charge, as far as this one knows.
  [[nodiscard]] bool is_other_in_charge() const;

  // For connections to the other head, and for those that a listener takes.
  [[nodiscard]] const proto::TlsContext& tls() const { return *tls_; }

  [[nodiscard]] const proto::TlsContext& server_tls() const { return *server_tls_; }

  [[nodiscard]] const proto::TcpEndpoint& other_endpoint() const;

  [[nodiscard]] const HeadConfig& config() const { return parts_.config; }

  // Both heads, in the order of the configuration.
  [[nodiscard]] std::vector<wire::HeadState> states() const;
  // "standby: follows the other head", for the service manager.
  [[nodiscard]] std::string summary() const;

 private:
  asio::awaitable<void> serve_witness(std::string node, Arrival arrival);
  asio::awaitable<void> serve_other(Arrival arrival);
  asio::awaitable<void> refuse_arrival(Arrival arrival);
  void perform(gang::LeadershipActions actions);
  void send(const gang::LeaseRequest& request);
  asio::awaitable<void> run_timer();
  asio::awaitable<void> connect_other();
  asio::awaitable<bool> greet_other(std::shared_ptr<proto::Connection> connection);
  asio::awaitable<void> talk(std::shared_ptr<proto::Connection> connection);
  void other_says(const proto::InFrame& frame);
  void asked(const proto::InFrame& frame);
  [[nodiscard]] std::string hello() const;
  [[nodiscard]] Status check_hello(const proto::InFrame& frame);
  void refuse(const std::string& peer, const Error& error);
  void describe_other(wire::HeadState& state) const;

  Parts parts_;
  gang::Leadership leadership_;
  Handlers handlers_;
  std::unique_ptr<proto::TlsContext> tls_;
  std::unique_ptr<proto::TlsContext> server_tls_;
  Alarm alarm_;
  std::vector<std::shared_ptr<proto::Connection>> witnesses_;  // [node]
  std::shared_ptr<proto::Connection> other_;
  TimePoint other_heard_{};
  std::optional<std::uint64_t> follower_stored_;  // of this term, what the other head has
  std::optional<TimePoint> other_led_;  // when it last renewed its lease here as head in charge
  std::string dashboard_;
  std::string other_dashboard_;
  std::string last_error_;
  LogLimiter limiter_;
};

// A digest of the nodes' names: both heads must count the same witnesses.
[[nodiscard]] std::uint64_t digest_of(const std::vector<std::string>& nodes);

}  // namespace score::head
