#pragma once
// Publisher turns the matrix into timetables: it decides which nodes must be sent a new one, its
// content, and its start. It also knows the order of slices, and so how long each job has been
// scheduled.

#include "gang/schedule/layout.hpp"
#include "gang/schedule/turns.hpp"
#include "gang/state/tables.hpp"

#include <optional>
#include <set>
#include <vector>

namespace score::gang {

// A Column is what a node follows, independent of its start: equal columns need no message.
struct Column {
  std::uint64_t cycle = 0;                   // serial; 0 if the node need not know the cycle
  std::vector<std::vector<AttemptId>> rows;  // [row of the cycle]; one: all rows run the same
  std::vector<AttemptId> managed;
  std::vector<AttemptId> background;
  std::vector<AttemptId> fill;  // jobs in turn that may fill; see may_fill()
  std::vector<AttemptId> displaced;

  [[nodiscard]] bool is_shared() const { return rows.size() > 1; }

  [[nodiscard]] bool runs_anything() const {
    return is_shared() || (!rows.empty() && !rows.front().empty());
  }

  friend bool operator==(const Column&, const Column&) = default;
};

class Publisher {
 public:
  // The matrix must outlive the publisher.
  Publisher(Tables& tables, const Matrix& matrix) : tables_(tables), matrix_(matrix) {}

  // Must follow NodeTable::add().
  void add_node() { sent_.emplace_back(); }

  // From now on the epochs are those of this head; see gang/job/epochs.hpp. A smaller incarnation
  // than before has no effect.
  void set_incarnation(Epoch incarnation);

  // Records that the node follows a timetable, or none. It is sent a new one in any case.
  void node_connected(NodeIndex node, bool follows);

  // Sends the changes, if there are any and they may be sent now. Returns true if all nodes have
  // been sent a timetable that holds every active job, so that tasks may be started.
  bool publish(Step& step);
  // Returns the time at which publish() may succeed although it could not before; nullopt if
  // nothing waits.
  [[nodiscard]] std::optional<TimePoint> next_time() const;

  // ---- scheduled time
  [[nodiscard]] Duration scheduled(const Job& job, TimePoint now) const;
  // The job's processes are killed now, whatever the timetable says.
  void stop(Job& job, TimePoint now);

  // ---- views
  [[nodiscard]] Epoch epoch() const { return epoch_; }

  [[nodiscard]] const CycleClock& cycles() const { return turns_.cycles(); }

  // Checks that every node was sent the current layout, if nothing is left to publish.
  [[nodiscard]] base::Result<void> check() const;

 private:
  struct Sent {
    std::optional<Column> column;  // nullopt: unknown
    TimePoint start{};
  };

  struct Change {
    const std::vector<NodeIndex>& nodes;  // must be sent a timetable
    const std::vector<Column>& columns;   // [node]
    const CycleLayout& layout;
    bool new_cycle = false;
  };

  struct Start {
    TimePoint at{};
    bool wait = false;   // nothing can be published before `at`
    bool early = false;  // cuts a slice in which no job is left
  };

  [[nodiscard]] std::vector<Column> columns_of(const CycleLayout& layout,
                                               std::uint64_t serial) const;
  [[nodiscard]] base::Timetable timetable_of(const Column& column, TimePoint start) const;
  void add_segments(base::Timetable& table, const Column& column) const;
  [[nodiscard]] bool is_slice_over(const CycleLayout& layout, TimePoint t) const;
  [[nodiscard]] Duration lead_for(std::size_t node_count) const;
  [[nodiscard]] Start choose_start(const Change& change, TimePoint now) const;
  void send(const std::vector<NodeIndex>& nodes, std::vector<Column>& columns, TimePoint start,
            Step& step);
  void note_left_out(const CycleLayout& layout, Step& step);
  void account(const CycleLayout& layout, TimePoint start);

  Tables& tables_;
  const Matrix& matrix_;
  std::vector<Sent> sent_;     // [node]
  std::set<JobId> accounted_;  // jobs whose scheduled time grows
  Turns turns_;
  Epoch epoch_{0};
  TimePoint latest_start_{};  // of all timetables sent
  TimePoint not_before_{};    // earliest time of the next change
};

}  // namespace score::gang
