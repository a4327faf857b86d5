#pragma once
// Monitoring is the head as its viewers see it. It collects what nodes measure while viewers watch,
// makes the documents and serves the web page. Changes from the web page go through Admin, as
// commands do.

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "monitor/http/http_server.hpp"
#include "monitor/http/site.hpp"
#include "monitor/meters/cluster_meter.hpp"
#include "monitor/meters/late_reports.hpp"
#include "monitor/meters/load_history.hpp"
#include "monitor/meters/sample_queue.hpp"
#include "monitor/model/settings.hpp"
#include "scored/control/control_network.hpp"
#include "scored/head/admin/admin.hpp"
#include "scored/head/clients/overview.hpp"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/cluster/observer.hpp"
#include "scored/head/cluster/trace_collector.hpp"
#include "scored/head/jobs/job_life.hpp"
#include "scored/head/jobs/job_table.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace score::head {

class Monitoring final : public monitor::Site, public HeadObserver {
 public:
  struct Parts {  // all must outlive the object
    HeadContext& head;
    const JobLife& life;
    Overview& overview;
    TraceCollector& traces;
    Admin& admin;
    const control::ControlNetwork& control;
    const FairShares& shares;
    const Notices& notices;
    monitor::Api* api = nullptr;  // null: no API for programs
  };

  // All other parameters must outlive this object, too.
  Monitoring(asio::io_context& io, Clock& clock, TaskGroup& tasks, const Parts& parts);

  // Listens, if the settings say so. Errors are one line.
  [[nodiscard]] Status open(const monitor::MonitorSettings& settings);
  void start(Epoch incarnation);
  void close();

  // Returns an address that logs its first visitor in as this user. Errors: Unsupported (no web
  // server), Busy.
  [[nodiscard]] Result<std::string> web_login(const Peer& peer);

  // ---- monitor::Site
  monitor::Frame snapshot(const monitor::Filter& filter, const monitor::Sight& sight) override;
  Status measured_snapshot(const std::string& owner, const monitor::Filter& filter,
                           const monitor::Sight& sight,
                           std::function<void(monitor::Frame)> give) override;
  Result<monitor::ViewerId> join(const std::string& owner, const monitor::ViewerOptions& options,
                                 const monitor::Sight& sight, monitor::Deliver deliver) override;
  Status change(monitor::ViewerId viewer, const monitor::ViewerOptions& options) override;
  void pause(monitor::ViewerId viewer, bool paused) override;
  void leave(monitor::ViewerId viewer) override;
  monitor::Sight sight_of(const std::optional<monitor::WebUser>& who) override;
  asio::awaitable<std::optional<monitor::WebUser>> user_named(std::string name) override;
  std::string session_document(const std::optional<monitor::WebSession>& session) override;
  asio::awaitable<Result<std::string>> act(monitor::WebUser who, monitor::Action action) override;
  asio::awaitable<Result<std::string>> trace(TraceRequest wish) override;
  Result<std::string> history(const monitor::HistoryRequest& request) override;
  asio::awaitable<std::string> metrics() override;

  // ---- HeadObserver
  void node_connected(NodeId node) override;
  void node_lost(NodeId node) override;
  void node_sampled(NodeId node, const wire::NodeSample& sample) override;
  void task_ended(NodeId node, JobId job) override;

 private:
  struct Asked {  // a waiting request for a snapshot with loads; it watches meanwhile
    monitor::ViewerId viewer;
    monitor::Filter filter;
    monitor::Sight sight;
    TimePoint give_up;
    std::function<void(monitor::Frame)> give;
  };

  asio::awaitable<void> make_documents();
  void answer_asked(const monitor::ClusterView& view);
  void update_sampling();
  void set_sampling(Duration period, bool peers);
  void play(TimePoint until);
  void feed(NodeId node, const monitor::NodeSample& sample);
  void report_late(const monitor::LateReports<monitor::LateSwitch>::Report& report);
  void request_samples(NodeId node, bool once);
  [[nodiscard]] Duration together() const;
  [[nodiscard]] Duration delay() const;
  monitor::ClusterView view();
  monitor::Frame encode(const monitor::ClusterView& view, const monitor::DocumentOptions& options);
  asio::awaitable<void> gather_totals();
  asio::awaitable<void> keep_history();
  void restore_history();
  void store_history();

  asio::io_context& io_;
  Clock& clock_;
  TaskGroup& tasks_;
  Parts parts_;
  std::string head_id_;
  monitor::ClusterMeter meter_;
  monitor::LoadHistory history_;
  monitor::SampleQueue queue_;
  monitor::LateReports<monitor::LateSwitch> late_;
  monitor::Hub hub_;
  std::vector<Asked> asked_;
  monitor::WebLogin logins_;
  std::optional<monitor::HttpServer> server_;
  Duration sampling_{0};        // period that nodes were sent; 0: none
  bool samples_peers_ = false;  // whether nodes were asked for peers, too
  std::optional<TimePoint> unwatched_since_;
  std::set<NodeId> awaited_;  // nodes that were asked for totals for a scrape
  asio::steady_timer all_came_;
  bool is_in_rank_barrier_ = false;
  asio::experimental::channel<void(boost::system::error_code)> wake_;
};

}  // namespace score::head
