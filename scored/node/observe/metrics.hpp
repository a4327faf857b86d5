// Serves the node's own /metrics, if the configuration enables it ([monitor] node_listen).
// Otherwise it is not constructed, because a node daemon has only 8 MB in all.
#pragma once

#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "monitor/http/http_server.hpp"
#include "monitor/http/site.hpp"
#include "monitor/model/settings.hpp"
#include "scored/control/control_network.hpp"
#include "scored/node/attempts/attempts.hpp"
#include "scored/node/memory/parker.hpp"
#include "scored/node/observe/sampling.hpp"

#include <optional>
#include <string>

namespace score::node {

class Metrics final : public monitor::MetricsSource {
 public:
  // All of these must outlive it.
  struct Parts {
    asio::io_context& io;
    Clock& clock;
    TaskGroup& tasks;
    Sampling& sampling;
    const Attempts& attempts;
    const Switcher& switcher;
    const control::ControlNetwork& control;
    const Parker& parker;
  };

  Metrics(Parts parts, std::string node);

  // Listens and serves; writes the port to run_dir/metrics.port. Errors: one line.
  [[nodiscard]] Status start(const monitor::MonitorSettings& settings, const std::string& run_dir);
  void close();

  asio::awaitable<std::string> metrics() override;

 private:
  Parts parts_;
  std::string node_;
  monitor::WebLogin logins_;
  std::optional<monitor::HttpServer> server_;
};

}  // namespace score::node
