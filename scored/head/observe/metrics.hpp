#pragma once
// What /metrics of the head says: docs/reference/metrics.md has every name.

#include "monitor/http/http_server.hpp"
#include "monitor/meters/cluster_meter.hpp"
#include "monitor/model/hub.hpp"
#include "scored/head/head.hpp"

#include <string>

namespace score::head {

[[nodiscard]] std::string metrics_text(Head& head, const monitor::ClusterMeter& meter,
                                       const monitor::Hub& hub,
                                       const monitor::HttpServer::Counts& requests);

}  // namespace score::head
