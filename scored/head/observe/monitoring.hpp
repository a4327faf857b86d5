#pragma once
// The head as its viewers see it: gathers what nodes measure while somebody watches, makes the
// documents, serves the web. Everything it changes goes through the permission table and Head, as
// what commands ask does.

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "monitor/http/http_server.hpp"
#include "monitor/http/site.hpp"
#include "monitor/meters/cluster_meter.hpp"
#include "monitor/meters/late_reports.hpp"
#include "monitor/meters/sample_queue.hpp"
#include "monitor/model/event_log.hpp"
#include "monitor/model/settings.hpp"
#include "scored/head/head.hpp"
#include "scored/head/observe/observer.hpp"

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
  // All outlive it. Observes the head from now on.
  Monitoring(asio::io_context& io, Clock& clock, TaskGroup& tasks, Head& head);
  ~Monitoring() override;

  // Listens, if the settings say so. Errors: one line.
  [[nodiscard]] Status open(const monitor::MonitorSettings& settings);
  void start();
  void close();

  // An address that makes whoever opens it this user, once. Errors: Unsupported (no web), Busy.
  [[nodiscard]] Result<std::string> web_login(const Peer& peer);

  // monitor::Site
  monitor::Frame snapshot(const monitor::Filter& filter, const monitor::Sight& sight) override;
  Status measured_snapshot(const monitor::Filter& filter, const monitor::Sight& sight,
                           std::function<void(monitor::Frame)> give) override;
  Result<monitor::ViewerId> join(const monitor::ViewerOptions& options, const monitor::Sight& sight,
                                 monitor::Deliver deliver) override;
  Status change(monitor::ViewerId viewer, const monitor::ViewerOptions& options) override;
  void pause(monitor::ViewerId viewer, bool paused) override;
  void leave(monitor::ViewerId viewer) override;
  monitor::Sight sight_of(const std::optional<monitor::WebUser>& who) override;
  std::optional<monitor::WebUser> user_named(const std::string& name) override;
  std::string session_document(const std::optional<monitor::WebSession>& session) override;
  Result<std::string> act(const monitor::WebUser& who, const monitor::Action& action) override;
  asio::awaitable<Result<std::string>> trace(TraceRequest wish) override;
  asio::awaitable<std::string> metrics() override;

  // HeadObserver
  void node_connected(NodeId node) override;
  void node_lost(NodeId node) override;
  void node_sampled(NodeId node, const wire::NodeSample& sample) override;
  void task_ended(NodeId node, JobId job) override;
  void happened(monitor::Event event) override;

 private:
  Status open_where_it_was(std::uint16_t wanted);

  struct Asked {  // for a snapshot with loads; watches meanwhile
    monitor::ViewerId viewer;
    monitor::Filter filter;
    monitor::Sight sight;
    TimePoint give_up;
    std::function<void(monitor::Frame)> give;
  };

  asio::awaitable<void> make_documents();
  void answer_asked(const monitor::ClusterView& view);
  void wish_samples();
  void wish(Duration period, bool peers);
  void play(TimePoint until);
  void feed(NodeId node, const monitor::NodeSample& sample);
  void report_late(const monitor::LateReports<monitor::LateSwitch>::Report& report);
  void send_wish(NodeId node, bool once);
  [[nodiscard]] Duration together() const;
  [[nodiscard]] Duration delay() const;
  monitor::ClusterView view();
  monitor::Frame encode(const monitor::ClusterView& view, const monitor::DocumentOptions& options);
  [[nodiscard]] bool may(const Peer& peer, const monitor::Action& action);
  Result<std::string> carry_out(const Peer& peer, const monitor::Action& action);
  asio::awaitable<void> gather_totals();

  asio::io_context& io_;
  Clock& clock_;
  TaskGroup& tasks_;
  Head& head_;
  std::string head_id_;
  monitor::ClusterMeter meter_;
  monitor::SampleQueue queue_;
  monitor::LateReports<monitor::LateSwitch> late_;
  monitor::EventLog events_;
  monitor::Hub hub_;
  std::vector<Asked> asked_;
  monitor::WebLogin logins_;
  std::optional<monitor::HttpServer> server_;
  Duration sampling_{0};        // period that nodes were told; 0: none
  bool samples_peers_ = false;  // ... too
  std::optional<TimePoint> unwatched_since_;
  std::set<NodeId> awaited_;  // totals asked of these for a scrape
  asio::steady_timer all_came_;
  bool is_gathering_ = false;
  asio::experimental::channel<void(boost::system::error_code)> wake_;
};

}  // namespace score::head
