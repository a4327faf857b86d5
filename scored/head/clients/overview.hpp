#pragma once
// Overview describes the current cluster for commands and viewers: facts, nodes, matrix and jobs.

#include "monitor/model/cluster_view.hpp"
#include "proto/client.pb.h"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/jobs/job_queries.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/reservations/reservation_manager.hpp"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace score::head {

class Overview {
 public:
  // The references must outlive this object.
  Overview(HeadContext& head, const JobQueries& queries, const ReservationManager& reservations)
      : head_(head), queries_(queries), reservations_(reservations) {}

  void set_dashboard_url(std::string url) { dashboard_url_ = std::move(url); }

  // Must be called if there are two heads.
  void set_heads(std::function<std::vector<wire::HeadState>()> states) {
    heads_ = std::move(states);
  }

  // Sets the function that returns what is known to keep a node from connecting; "": nothing.
  void set_node_faults(std::function<std::string(const std::string& node)> fault_of) {
    fault_of_ = std::move(fault_of);
  }

  // Returns whether the other head can take over; nullopt if there is only one head.
  [[nodiscard]] std::optional<bool> has_current_follower() const;

  // Replies have no tag.
  [[nodiscard]] wire::Info info() const;
  [[nodiscard]] wire::NodeList nodes() const;

  [[nodiscard]] wire::ReservationList reservations(const Peer& peer) const {
    return reservations_.list(peer);
  }

  // Returns the view without measurements, viewers and events.
  [[nodiscard]] monitor::ClusterView view() const;
  // Returns a text for the service manager, such as "64/64 nodes, 3 jobs, quantum 100ms".
  [[nodiscard]] std::string summary() const;

 private:
  // Returns why the node's key is refused; "": it is not, or the node is connected.
  [[nodiscard]] std::string key_fault_of(const gang::NodeView& view) const;
  [[nodiscard]] std::string reason_of(const gang::NodeView& view) const;
  void add_nodes(monitor::ClusterView& out) const;
  void add_matrix(monitor::ClusterView& out) const;
  void add_jobs(monitor::ClusterView& out) const;

  HeadContext& head_;
  const JobQueries& queries_;
  const ReservationManager& reservations_;
  std::string dashboard_url_;
  std::function<std::vector<wire::HeadState>()> heads_;
  std::function<std::string(const std::string&)> fault_of_;
};

}  // namespace score::head
