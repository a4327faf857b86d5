#pragma once
// Overview describes the current cluster for commands and viewers: facts, nodes, matrix and jobs.

#include "monitor/model/cluster_view.hpp"
#include "proto/client.pb.h"
#include "scored/head/cluster/cluster_runner.hpp"
#include "scored/head/cluster/node_links.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/jobs/job_queries.hpp"
#include "scored/head/jobs/job_table.hpp"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace score::head {

class Overview {
 public:
  // All references must outlive this object.
  Overview(const ClusterRunner& runner, const HeadConfig& config, const JobTable& jobs,
           const JobQueries& queries, const NodeLinks& links)
      : runner_(runner), config_(config), jobs_(jobs), queries_(queries), links_(links) {}

  void set_dashboard_url(std::string url) { dashboard_url_ = std::move(url); }

  // Must be called if there are two heads.
  void set_heads(std::function<std::vector<wire::HeadState>()> states) {
    heads_ = std::move(states);
  }

  // Returns whether the other head can take over; nullopt if there is only one head.
  [[nodiscard]] std::optional<bool> has_current_follower() const;

  // Replies have no tag.
  [[nodiscard]] wire::Info info() const;
  [[nodiscard]] wire::NodeList nodes() const;
  // Returns the view without measurements, viewers and events.
  [[nodiscard]] monitor::ClusterView view() const;
  // Returns a text for the service manager, such as "64/64 nodes, 3 jobs, quantum 100ms".
  [[nodiscard]] std::string summary() const;

 private:
  void add_nodes(monitor::ClusterView& out) const;
  void add_matrix(monitor::ClusterView& out) const;
  void add_jobs(monitor::ClusterView& out) const;

  const ClusterRunner& runner_;
  const HeadConfig& config_;
  const JobTable& jobs_;
  const JobQueries& queries_;
  const NodeLinks& links_;
  std::string dashboard_url_;
  std::function<std::vector<wire::HeadState>()> heads_;
};

}  // namespace score::head
