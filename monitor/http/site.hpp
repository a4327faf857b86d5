#pragma once
// The interface of a daemon to the web server.

#include "base/async/asio.hpp"
#include "base/result.hpp"
#include "monitor/http/web_login.hpp"
#include "monitor/model/action.hpp"
#include "monitor/model/hub.hpp"

#include <functional>
#include <optional>
#include <string>

namespace score::monitor {

// Where the cluster is shown, as a daemon says that only follows another one.
struct Elsewhere {
  std::string url;   // "http://head-b:8080"; empty: no browser can be sent there
  std::string text;  // one line
};

// A daemon with metrics for Prometheus: a head or a node.
class MetricsSource {
 public:
  MetricsSource() = default;
  MetricsSource(const MetricsSource&) = delete;
  MetricsSource& operator=(const MetricsSource&) = delete;
  virtual ~MetricsSource() = default;

  // The text that Prometheus reads.
  virtual asio::awaitable<std::string> metrics() = 0;
};

// The head.
class Site : public MetricsSource {
 public:
  enum class TraceFormat { Records, Chrome, Perfetto };

  struct TraceRequest {
    Duration since{5s};
    std::optional<std::uint64_t> late;  // around this one instead
    std::optional<TimePoint> at;        // ... or around this moment, cluster time
    TraceFormat format = TraceFormat::Records;
  };

  // One document with the slices of the last 5 s.
  virtual Frame snapshot(const Filter& filter, const Sight& sight) = 0;
  // Calls `give` once, when every running task was measured, or after 3 s; at once if the filter
  // selects nothing that is measured. Errors: Busy.
  virtual Status measured_snapshot(const Filter& filter, const Sight& sight,
                                   std::function<void(Frame)> give) = 0;
  // Documents from now on. Errors: Busy.
  virtual Result<ViewerId> join(const ViewerOptions& options, const Sight& sight,
                                Deliver deliver) = 0;
  virtual Status change(ViewerId viewer, const ViewerOptions& options) = 0;
  virtual void pause(ViewerId viewer, bool paused) = 0;
  virtual void leave(ViewerId viewer) = 0;

  // The rights of this user now; none: a viewer.
  virtual Sight sight_of(const std::optional<WebUser>& who) = 0;
  // The account of this name, authenticated by a proxy; none: unknown.
  virtual asio::awaitable<std::optional<WebUser>> user_named(std::string name) = 0;
  // scored.session/1.
  virtual std::string session_document(const std::optional<WebSession>& session) = 0;
  // The line to show. Errors: Denied, NotFound, WrongState, Malformed.
  virtual asio::awaitable<Result<std::string>> act(WebUser who, Action action) = 0;
  // In that format. Errors: NotFound.
  virtual asio::awaitable<Result<std::string>> trace(TraceRequest request) = 0;
};

}  // namespace score::monitor
