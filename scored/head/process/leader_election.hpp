#pragma once
// LeaderElection connects gang::Leadership to the nodes and to the other head: it sends its
// requests and passes on their answers. Only these decide which head is in charge. Thread: the
// loop's.

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
#include "scored/head/etcd/etcd_lease.hpp"
#include "scored/head/process/witness_set.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace score::head {

class LeaderElection {
 public:
  struct Parts {  // all must outlive the object
    asio::io_context& io;
    Clock& clock;
    TaskGroup& tasks;  // stopped before this object is destroyed
    const HeadConfig& config;
    const proto::KeyRing& ring;
    etcd::EtcdLease* etcd = nullptr;  // set if the lease is in etcd
  };

  // The handlers act on decisions: first those of the standby, then those of the head in charge.
  struct Handlers {
    std::function<void(Epoch term)> store_term;  // must then call term_stored()
    std::function<void(Epoch term)> store_vote;  // must then call vote_stored()
    std::function<void(Epoch term)> take_charge;
    std::function<void(const std::string& why)> stand_down;
    // Is called when the other head is in charge and connected, so its log can be followed.
    std::function<void()> can_follow;
    std::function<void()> other_lost;
    std::function<void(const proto::InFrame& frame)> log_frame;  // from the other head
    // Is called when the commit log may acknowledge more.
    std::function<void()> advanced;
    std::function<void(TimePoint now)> tick;
  };

  LeaderElection(const Parts& parts, gang::Leadership::Settings settings,
                 gang::LogPosition position, gang::StoredTerms terms);

  void handle(Handlers handlers) { handlers_ = std::move(handlers); }

  // Sets the URL of this head's web server, for the other head. Must be called before start().
  void set_dashboard(std::string url) { dashboard_ = std::move(url); }

  // Returns the URL of the other head's dashboard, such as "http://head-b:8080"; empty if it has
  // none or it is unknown.
  [[nodiscard]] const std::string& other_dashboard() const { return other_dashboard_; }

  // Starts the timer, and the connection to the first head if this is the second one.
  void start();

  // A listener has read the key and the first frame of this connection.
  struct Arrival {
    std::shared_ptr<proto::Connection> connection;
    std::string identity;  // as the handshake proved it
    proto::InFrame first;
  };

  // Serves witnesses and the other head; all other peers learn which head is in charge.
  void take(Arrival arrival);
  // Returns the key of a node, of the other head or of a setup token; `identity` may be any text. A
  // listener of this process uses it while this head is not in charge.
  [[nodiscard]] std::optional<proto::Key> key_of(std::string_view identity) const;

  void term_stored(Epoch term);
  void vote_stored(Epoch term);

  // These functions forward to gang::Leadership.
  void stored(gang::LogPosition position) { leadership_.stored(position); }

  void committed(std::uint64_t sequence);

  void follower_current(std::uint64_t sequence);

  void follower_stored(std::uint64_t sequence);

  void follower_lost();

  [[nodiscard]] std::uint64_t acknowledged() {
    return leadership_.acknowledged(parts_.clock.now());
  }

  // Returns true if this head holds the leases of a quorum, as of now. If they have ended it stands
  // down at once, as its timer would. It is called before each request and each reply.
  [[nodiscard]] bool is_in_charge();

  [[nodiscard]] gang::LeadershipRole role() const { return leadership_.role(); }

  [[nodiscard]] gang::LogPosition position() const { return leadership_.position(); }

  // Returns true if --recover has made this head lead although it lacked changes.
  [[nodiscard]] bool has_accepted_loss() const { return leadership_.has_accepted_loss(); }

  [[nodiscard]] bool has_current_follower() const { return leadership_.has_current_follower(); }

  // Returns the connection to the other head; nullptr if there is none.
  [[nodiscard]] const std::shared_ptr<proto::Connection>& other() const { return other_; }

  // Closes the connection to the other head; it will be opened again.
  void drop_other(const std::string& why);

  // Returns true if the other head is in charge, as far as this one knows.
  [[nodiscard]] bool is_other_in_charge() const;

  // Returns the TLS context for connections to the other head; server_tls() is for accepted ones.
  [[nodiscard]] const proto::TlsContext& tls() const { return *tls_; }

  [[nodiscard]] const proto::TlsContext& server_tls() const { return *server_tls_; }

  [[nodiscard]] const proto::TcpEndpoint& other_endpoint() const;

  [[nodiscard]] const HeadConfig& config() const { return parts_.config; }

  // Returns the states of both heads, in the order of the configuration.
  [[nodiscard]] std::vector<wire::HeadState> states() const;
  // Returns a text for the service manager, such as "standby: follows the other head".
  [[nodiscard]] std::string summary() const;

 private:
  asio::awaitable<void> serve_witness(std::string node, Arrival arrival);
  asio::awaitable<void> serve_other(Arrival arrival);
  asio::awaitable<void> refuse_arrival(Arrival arrival);
  void perform(gang::LeadershipActions actions);
  void send(const gang::AskWitnesses& asks);
  void etcd_replied(gang::LeaseReply reply);

  struct Answer {
    gang::LeaseReply reply;
    bool leads = false;  // the other head was elected in the term of its request
  };

  void reply_to_other(const Answer& answer);
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
  [[nodiscard]] std::string why_not() const;

  Parts parts_;
  WitnessSet witnesses_;
  gang::Leadership leadership_;
  Handlers handlers_;
  std::unique_ptr<proto::TlsContext> tls_;
  std::unique_ptr<proto::TlsContext> server_tls_;
  Alarm alarm_;
  Epoch vote_;                    // greatest stored term that was granted to the other head
  std::optional<Answer> unsent_;  // waits until its term is stored
  std::shared_ptr<proto::Connection> other_;
  TimePoint other_heard_{};
  TimePoint in_charge_until_{};                   // at least; the leases may last longer
  std::optional<std::uint64_t> follower_stored_;  // what the other head has stored in this term
  std::optional<TimePoint> other_led_;            // last renewal by the other head in charge
  std::string dashboard_;
  std::string other_dashboard_;
  std::string last_error_;
  LogLimiter limiter_;
};

}  // namespace score::head
