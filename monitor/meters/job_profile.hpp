#pragma once
// JobProfile keeps what a job used over time, in bounded memory: a point every ten seconds at
// first. Whenever it is full, two points become one, and each later one covers twice the time. If
// the points are far apart, the time doubles until some of them meet. It is pure.

#include "base/ids.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace score::monitor {

// NodeUse is what one node reports of a job, or of a step of it.
struct NodeUse {
  Duration cpu{0};   // processor time since the report before
  Bytes memory{0};   // the most since then
  Bytes pm_sent{0};  // since then
};

struct ProfilePoint {
  WallTime end{};           // a multiple of the step
  Duration cpu{0};          // of all nodes, as the rest
  Bytes memory{0};          // the most within the step
  Bytes memory_largest{0};  // likewise, of the node that had most
  Bytes pm_sent{0};

  friend bool operator==(const ProfilePoint&, const ProfilePoint&) = default;
};

class JobProfile {
 public:
  static constexpr Duration kReportPeriod = std::chrono::seconds(10);
  static constexpr std::size_t kMostPoints = 180;

  // Adds a node's report to the point whose end is nearest. A report that is older than the last
  // point counts to that point. `reported` is the job itself or one of its steps, which may run at
  // the same time there.
  void add(NodeId node, JobId reported, WallTime at, const NodeUse& use);

  [[nodiscard]] Duration step() const { return step_; }

  [[nodiscard]] std::span<const ProfilePoint> points() const { return points_; }

 private:
  struct Report {
    WallTime end{};  // of its step
    Bytes memory{0};
  };

  [[nodiscard]] WallTime end_of_step(WallTime at) const;
  void double_step();
  void add_memory(ProfilePoint& point);

  Duration step_ = kReportPeriod;
  std::vector<ProfilePoint> points_;
  std::map<std::pair<NodeId, JobId>, Report> last_;  // that are not older than a step
};

}  // namespace score::monitor
