#pragma once
// EventLog holds the most recent events, for people. It is pure.

#include "base/ids.hpp"
#include "base/time.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>

namespace score::monitor {

enum class EventKind : std::uint8_t { Job, Node, Admin, Late, Head };

[[nodiscard]] const char* name_of(EventKind kind);  // "job" ...

struct Event {
  std::uint64_t id = 0;  // assigned by the log
  TimePoint at{};
  WallTime wall{};
  EventKind kind = EventKind::Head;
  std::string text;         // one line, escaped
  std::string public_text;  // for users who may not see the job's owner; empty: as `text`
  std::optional<JobId> job;
  std::optional<NodeId> node;
};

class EventLog {
 public:
  static constexpr std::size_t kKept = 50;
  // On a crowded machine switches are late all the time; the jobs' events must stay.
  static constexpr std::ptrdiff_t kKeptLate = 5;

  void add(Event event) {
    event.id = ++last_id_;
    const auto is_late = [](const Event& one) { return one.kind == EventKind::Late; };
    if (is_late(event) && std::ranges::count_if(events_, is_late) >= kKeptLate) {
      events_.erase(std::ranges::find_if(events_, is_late));
    }
    events_.push_back(std::move(event));
    if (events_.size() > kKept) events_.pop_front();
  }

  [[nodiscard]] const std::deque<Event>& events() const { return events_; }

 private:
  std::deque<Event> events_;
  std::uint64_t last_id_ = 0;
};

}  // namespace score::monitor
