#pragma once
// Who is alive, from signs of life and the time. Pure.

#include "base/ids.hpp"
#include "base/time.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace score::gang {

enum class Verdict : std::uint8_t {
  Alive,    // heard of within suspect_after, and its link is up
  Suspect,  // silent for suspect_after, or its link broke
  Dead,     // silent for dead_after; only watch() brings it back
};

class FailureDetector {
 public:
  FailureDetector(base::Duration suspect_after, base::Duration dead_after);

  // Begins, or begins anew, to watch a node; it is Alive and was heard of now.
  void watch(base::NodeId node, base::TimePoint now);
  // As watch(), but Suspect, and Dead at `deadline` if it is not watched again before.
  void expect(base::NodeId node, base::TimePoint now, base::TimePoint deadline);
  // A sign of life: O(1), or O(log n) if it was suspected. True if that cleared a suspicion. Of
  // dead and unwatched nodes it is ignored.
  bool heard(base::NodeId node, base::TimePoint now);
  // Its link broke: Suspect at once, Dead dead_after its last sign of life. False if it was so.
  bool lost_link(base::NodeId node, base::TimePoint now);

  struct Change {
    base::NodeId node{0};
    Verdict verdict = Verdict::Alive;
    base::Duration silent{0};
  };

  // What changed by the passing of time, in order of time. If the caller comes more than a second
  // later than next_deadline() it was stopped itself and could hear nobody: that time is not held
  // against the nodes.
  std::vector<Change> advance(base::TimePoint now);
  // When advance() may have something to say; never later than that.
  [[nodiscard]] std::optional<base::TimePoint> next_deadline() const;
  // Dead for nodes that are not watched.
  [[nodiscard]] Verdict verdict(base::NodeId node) const;

 private:
  struct Watched {
    base::TimePoint heard{};
    base::TimePoint queued{};  // its key in queue_
    Verdict verdict = Verdict::Alive;
    bool linked = true;
    std::optional<base::TimePoint> deadline;  // instead of heard + dead_after
  };

  [[nodiscard]] base::TimePoint due(const Watched& watched) const;
  void requeue(base::NodeId node, Watched& watched);
  void forgive(base::Duration time);

  base::Duration suspect_after_;
  base::Duration dead_after_;
  std::map<base::NodeId, Watched> nodes_;
  std::set<std::pair<base::TimePoint, base::NodeId>> queue_;  // may be early, never late
};

}  // namespace score::gang
