#pragma once
// Deadlines holds the deadlines of jobs that the head, not gang::Cluster, is responsible for. It is
// pure.

#include "base/ids.hpp"
#include "base/time.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace score::head {

enum class DeadlineKind : std::uint8_t {
  Kill,       // the grace after SIGTERM is over
  Immediate,  // the job had to be placed by now
  FrontEnd,   // no front end came back to a job that needs one
  Drop,       // the output of an ended job was not fetched
};

// There is at most one deadline per kind and job.
class Deadlines {
 public:
  struct Due {
    JobId job;
    DeadlineKind kind{};

    friend bool operator==(const Due&, const Due&) = default;
  };

  // Replaces an earlier deadline of this kind.
  void set(JobId job, DeadlineKind kind, TimePoint at);
  void clear(JobId job, DeadlineKind kind);
  void clear(JobId job);

  [[nodiscard]] bool has(JobId job, DeadlineKind kind) const { return at_.contains({job, kind}); }

  [[nodiscard]] std::optional<TimePoint> next() const;
  // Removes and returns the deadlines that have passed, earliest first.
  [[nodiscard]] std::vector<Due> take_due(TimePoint now);

 private:
  std::map<std::pair<JobId, DeadlineKind>, TimePoint> at_;
  std::set<std::tuple<TimePoint, JobId, DeadlineKind>> order_;
};

}  // namespace score::head
