#pragma once
// This header makes the text of the head's /metrics; docs/reference/metrics.md has every name.

#include "gang/head/cluster.hpp"
#include "monitor/http/http_server.hpp"
#include "monitor/meters/cluster_meter.hpp"
#include "monitor/model/cluster_view.hpp"
#include "monitor/model/hub.hpp"
#include "monitor/sampler/samples.hpp"
#include "scored/control/control_network.hpp"
#include "scored/head/admin/permissions.hpp"
#include "scored/head/clients/pools.hpp"
#include "scored/head/jobs/fair_shares.hpp"
#include "scored/head/notices/notices.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace score::head {

struct MetricsInput {
  const monitor::ClusterView& view;
  const gang::ClusterCounters& counters;
  const monitor::WaitHistogram& job_waits;
  const monitor::ClusterMeter& meter;
  const monitor::Hub& hub;
  const monitor::HttpServer::Counts& requests;
  const control::ControlNetwork& control;
  const Permissions::Counts& denied;
  const std::vector<FairShares::AccountUse>& accounts;
  std::map<NoticeChannel, NoticeCounts> notices;
  std::optional<bool> has_current_follower;  // with two heads
  const Pools& pools;
};

[[nodiscard]] std::string metrics_text(const MetricsInput& input);

}  // namespace score::head
