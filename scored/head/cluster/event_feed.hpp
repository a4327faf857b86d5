#pragma once
// EventFeed keeps the latest events for viewers. Every part of the head writes to it; clients/
// shows them.

#include "base/async/clock.hpp"
#include "monitor/model/event_log.hpp"

#include <optional>
#include <string>
#include <utility>

namespace score::head {

class EventFeed {
 public:
  struct About {
    std::optional<JobId> job = {};
    std::optional<NodeId> node = {};
    std::string public_text = {};      // for viewers who may not see its user; empty: the text
    std::optional<TimePoint> at = {};  // none: now
  };

  // `clock` must outlive this object.
  explicit EventFeed(Clock& clock) : clock_(clock) {}

  void add(monitor::EventKind kind, std::string text, About about) {
    monitor::Event event;
    event.at = about.at.value_or(clock_.now());
    event.wall = wall_now();
    event.kind = kind;
    event.text = std::move(text);
    event.public_text = std::move(about.public_text);
    event.job = about.job;
    event.node = about.node;
    log_.add(std::move(event));
  }

  [[nodiscard]] const monitor::EventLog& log() const { return log_; }

 private:
  Clock& clock_;
  monitor::EventLog log_;
};

}  // namespace score::head
