#pragma once
// FollowerPage is the web server of a head that is not in charge. It listens at the address at
// which this head shows the cluster when it is in charge. It redirects browsers and tools to the
// dashboard of the head in charge, or says which head that is. /metrics reports that this head
// follows. Thread: the loop's.

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "monitor/http/http_server.hpp"
#include "monitor/http/site.hpp"
#include "monitor/http/web_login.hpp"
#include "scored/head/process/leader_election.hpp"

#include <optional>
#include <string>

namespace score::head {

class FollowerPage final : public monitor::MetricsSource {
 public:
  struct Parts {  // all must outlive the object
    asio::io_context& io;
    Clock& clock;
    TaskGroup& tasks;
    const HeadConfig& config;
    const LeaderElection& election;
  };

  explicit FollowerPage(const Parts& parts);

  // Listens if the settings say so; a failure is only logged, because the head can follow without
  // it.
  void start();
  void close();

  // Returns the server's URL; empty if it does not listen.
  [[nodiscard]] std::string url() const { return server_ ? server_->url() : std::string(); }

  asio::awaitable<std::string> metrics() override;

 private:
  Status open();
  [[nodiscard]] monitor::Elsewhere elsewhere() const;

  Parts parts_;
  monitor::WebLogin logins_;  // empty: a follower has no logins
  std::optional<monitor::HttpServer> server_;
};

// KnownLeader is what a follower knows about the head in charge.
struct KnownLeader {
  bool is_known = false;
  std::string name;  // "head-b:7421" of `heads`
  std::string url;   // of its dashboard, without a final "/"; empty: none
};

// Returns where to redirect a browser. It must be an address that the browser can reach: not a
// loopback address of a different host, and not the address of the request itself, which may be a
// proxy of both heads.
[[nodiscard]] monitor::Elsewhere elsewhere_of(const KnownLeader& leader,
                                              const std::string& own_url);

}  // namespace score::head
