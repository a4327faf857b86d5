#pragma once
// Site is the interface of a daemon to the web server.

#include "base/async/asio.hpp"
#include "base/result.hpp"
#include "monitor/http/web_login.hpp"
#include "monitor/model/action.hpp"
#include "monitor/model/history_document.hpp"
#include "monitor/model/hub.hpp"

#include <functional>
#include <optional>
#include <string>

namespace score::monitor {

// Elsewhere names the daemon that shows the cluster. A daemon that only follows it returns this.
struct Elsewhere {
  std::string url;   // "http://head-b:8080"; empty: browsers cannot be redirected
  std::string text;  // one line
};

// MetricsSource is a daemon with metrics for Prometheus: a head or a node.
class MetricsSource {
 public:
  MetricsSource() = default;
  MetricsSource(const MetricsSource&) = delete;
  MetricsSource& operator=(const MetricsSource&) = delete;
  virtual ~MetricsSource() = default;

  // Returns the text that Prometheus reads.
  virtual asio::awaitable<std::string> metrics() = 0;
};

// Site is the interface of a head.
class Site : public MetricsSource {
 public:
  enum class TraceFormat { Records, Chrome, Perfetto };

  struct TraceRequest {
    Duration since{5s};
    std::optional<std::uint64_t> late;  // around this late switch instead
    std::optional<TimePoint> at;        // or around this moment instead, in cluster time
    TraceFormat format = TraceFormat::Records;
  };

  // Returns one document with the slices of the last 5 s.
  virtual Frame snapshot(const Filter& filter, const Sight& sight) = 0;
  // Calls `give` once, when every running task was measured, or after 3 s. It calls it at once if
  // the filter selects nothing that is measured. `owner` as for Hub::add(). Errors: Busy.
  virtual Status measured_snapshot(const std::string& owner, const Filter& filter,
                                   const Sight& sight, std::function<void(Frame)> give) = 0;
  // Delivers documents from now on. `owner` as for Hub::add(). Errors: Busy.
  virtual Result<ViewerId> join(const std::string& owner, const ViewerOptions& options,
                                const Sight& sight, Deliver deliver) = 0;
  virtual Status change(ViewerId viewer, const ViewerOptions& options) = 0;
  virtual void pause(ViewerId viewer, bool paused) = 0;
  virtual void leave(ViewerId viewer) = 0;

  // Returns the present rights of this user; without a user, those of a viewer.
  virtual Sight sight_of(const std::optional<WebUser>& who) = 0;
  // Returns the account of this name, authenticated by a proxy, or nothing if it is unknown.
  virtual asio::awaitable<std::optional<WebUser>> user_named(std::string name) = 0;
  // Returns the document scored.session/1.
  virtual std::string session_document(const std::optional<WebSession>& session) = 0;
  // Returns the line to show. Errors: Denied, NotFound, WrongState, Malformed.
  virtual asio::awaitable<Result<std::string>> act(WebUser who, Action action) = 0;
  // Returns the trace in the requested format. Errors: NotFound.
  virtual asio::awaitable<Result<std::string>> trace(TraceRequest request) = 0;
  // Returns the history in the requested form. Errors: NotFound.
  virtual Result<std::string> history(const HistoryRequest& request) = 0;
};

}  // namespace score::monitor
