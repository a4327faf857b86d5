#pragma once
// Forecast holds the free cores of each row and node, and the free memory of each node, over time.
// Jobs are put, in queue order, at the earliest time at which there is room for their whole
// duration. It has no I/O and no clock.

#include "gang/matrix/shape.hpp"
#include "gang/state/calendar.hpp"

#include <map>
#include <optional>
#include <set>
#include <vector>

namespace score::gang {

class Forecast {
 public:
  struct Node {
    std::uint32_t cores = 0;  // in each row; 0: no job is placed there
    base::Bytes memory{0};
  };

  // Part holds what a job uses on one node.
  struct Part {
    NodeIndex node = 0;
    std::uint32_t cores = 0;
    base::Bytes memory{0};
  };

  struct Wanted {
    Shape shape;
    std::size_t rows = 1;       // number of rows, from the first, that it may use
    bool is_exclusive = false;  // takes all rows of its nodes
    std::vector<bool> allowed;  // indexed by node; empty: all
    Occupant occupant;          // `bound` is its duration
  };

  // `calendar` must outlive the forecast.
  Forecast(TimePoint now, std::size_t rows, std::vector<Node> nodes, const Calendar& calendar)
      : now_(now), rows_(rows), nodes_(std::move(nodes)), calendar_(calendar) {}

  // Adds a job that has a place now. `row` is nullopt for all rows; `end` is nullopt if it is not
  // known.
  void occupied(const std::vector<Part>& parts, std::optional<std::size_t> row,
                std::optional<TimePoint> end);

  // Puts the job and returns the time when it starts. Returns nullopt, and takes nothing, if that
  // depends on jobs whose ends are not known, if the job cannot start at all, or if the search
  // would take too long.
  std::optional<TimePoint> put(const Wanted& wanted);

 private:
  // Steps records, for one row of a node or for its memory, how the amount in use changes over
  // time; a release is negative.
  using Steps = std::map<TimePoint, std::int64_t>;

  [[nodiscard]] static std::int64_t most_taken(const Steps& steps, TimePoint from, TimePoint to);

  [[nodiscard]] Steps& cores(NodeIndex node, std::size_t row) { return cores_[{node, row}]; }

  void take(const Part& part, std::optional<std::size_t> row, TimePoint from, TimePoint to);
  [[nodiscard]] std::uint32_t free_cores(NodeIndex node, std::optional<std::size_t> row,
                                         TimePoint from, TimePoint to);
  [[nodiscard]] std::optional<Choice> fits(const Wanted& wanted, std::optional<std::size_t> row,
                                           TimePoint at);

  TimePoint now_;
  std::size_t rows_;
  std::vector<Node> nodes_;
  const Calendar& calendar_;
  std::map<std::pair<NodeIndex, std::size_t>, Steps> cores_;  // [node, row]
  std::map<NodeIndex, Steps> memory_;
  std::set<TimePoint> ends_;  // room grows only at these times
  std::uint64_t work_ = 0;
};

}  // namespace score::gang
