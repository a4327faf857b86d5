#pragma once
// Free cores of each row and node, and free memory of each node, over time. Jobs are put, in the
// order of the line, at the earliest time at which there is room for as long as they last. Pure.

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

  // What a job has or takes on one node.
  struct Part {
    NodeIndex node = 0;
    std::uint32_t cores = 0;
    base::Bytes memory{0};
  };

  struct Wanted {
    Shape shape;
    std::size_t rows = 1;       // it may use the first so many
    bool is_exclusive = false;  // all rows of its nodes
    std::vector<bool> allowed;  // [node]; empty: all
    Occupant occupant;          // bound: how long it lasts
  };

  // calendar must outlive it.
  Forecast(TimePoint now, std::size_t rows, std::vector<Node> nodes, const Calendar& calendar)
      : now_(now), rows_(rows), nodes_(std::move(nodes)), calendar_(calendar) {}

  // A job that has a place now. row: nullopt for all rows. end: nullopt if it is not known.
  void occupied(const std::vector<Part>& parts, std::optional<std::size_t> row,
                std::optional<TimePoint> end);

  // Puts the job; the time when it starts. nullopt: that depends on jobs whose ends are not known,
  // it cannot be at all, or it would take too long to find out. Then nothing is taken.
  std::optional<TimePoint> put(const Wanted& wanted);

 private:
  // Of one row of a node, or of the memory of a node: what is taken from a time on; gifts negative.
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
  std::set<TimePoint> ends_;  // room grows only then
  std::uint64_t work_ = 0;
};

}  // namespace score::gang
