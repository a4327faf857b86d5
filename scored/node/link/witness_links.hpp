// Makes the node a witness of which of two heads is in charge (docs/adr/0089). It keeps a
// connection to each head, over which the head asks for its lease. A grant is stored before it is
// answered.
#pragma once

#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "gang/leadership/witness.hpp"
#include "proto/transport/tls_connection.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace score::node {

class WitnessLinks {
 public:
  struct Parts {  // all must outlive the tasks
    Clock& clock;
    TaskGroup& tasks;
    const proto::TlsContext& tls;
  };

  struct Setup {
    std::string node;
    std::vector<proto::TcpEndpoint> heads;  // two
    std::string file;                       // stores what the node has granted
  };

  // `held` is called when a head has been granted the lease and is in charge, once per term.
  WitnessLinks(Parts parts, Setup setup, std::function<void(gang::HeadIndex)> held);

  // Reads the file and connects. A file that cannot be read counts as missing.
  void start();

  // Returns why a command has to wait, or "" if a head is in charge.
  [[nodiscard]] std::string why_no_head() const {
    const bool has_head = shown_ && parts_.clock.now() < witness_->until();
    return has_head ? "" : "no head of the cluster is in charge at the moment; try again";
  }

 private:
  asio::awaitable<void> run(gang::HeadIndex head);
  asio::awaitable<void> serve(gang::HeadIndex head, std::shared_ptr<proto::Connection> connection);
  asio::awaitable<void> close_silent();
  bool answer(gang::HeadIndex head, proto::Connection& connection, const proto::InFrame& frame);
  [[nodiscard]] Status store() const;

  struct Link {
    std::shared_ptr<proto::Connection> connection;
    TimePoint heard{};
    std::string last_error;
  };

  Parts parts_;
  Setup setup_;
  std::function<void(gang::HeadIndex)> held_;
  std::optional<gang::Witness> witness_;
  std::vector<Link> links_;  // [head]
  std::optional<gang::HeadIndex> shown_;
  Epoch shown_term_;
};

}  // namespace score::node
