#pragma once
// FailureDetector decides which nodes are alive, from their signs of life and the time. It has no
// I/O and no clock.

#include "base/ids.hpp"
#include "base/time.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace score::gang {

enum class Verdict : std::uint8_t {
  Alive,    // heard within suspect_after, and its link is up
  Suspect,  // silent for suspect_after, or its link broke
  Dead,     // silent for dead_after, or its link stayed broken; only watch() revives it
};

class FailureDetector {
 public:
  struct Limits {
    base::Duration suspect_after{};    // silence on a link that is up
    base::Duration dead_after{};       // likewise; longer than suspect_after
    base::Duration reconnect_grace{};  // from the break of a link to Dead
    // Reports by other nodes count for this long after the node itself was heard: its link may be
    // silent in both directions although it is alive.
    base::Duration vouched_for = std::chrono::hours{24};
    base::Duration deaf_for = std::chrono::seconds{4};  // see deaf()
  };

  explicit FailureDetector(Limits limits);

  // Starts, or restarts, to watch a node. It is Alive and counts as heard now.
  void watch(base::NodeId node, base::TimePoint now);
  // Works like watch(), but the node is Suspect, and Dead at `deadline` unless watch() is called
  // before.
  void expect(base::NodeId node, base::TimePoint now, base::TimePoint deadline);
  // Stops to watch a node.
  void forget(base::NodeId node);
  // Records a sign of life in O(1), or in O(log n) if the node was suspected. Returns true if that
  // cleared a suspicion. It is ignored for nodes that are dead, unwatched or without a link.
  bool heard(base::NodeId node, base::TimePoint now);
  // Works like heard(), but the report comes from a different node, which may be wrong for a while;
  // see vouched_for.
  bool vouched(base::NodeId node, base::TimePoint now);
  // Records that other nodes have not heard it since then: later reports that it is alive do not
  // count.
  void denied(base::NodeId node, base::TimePoint since);
  // Records the node's report that it receives nothing: it becomes Suspect at once. Reports by it
  // or by others still count as signs of life. They clear no suspicion until hears(), or for
  // deaf_for if the node does not repeat its report. Returns true if it was Alive.
  bool deaf(base::NodeId node, base::TimePoint now);
  void hears(base::NodeId node);
  // Records that its link broke: it is Suspect at once, and Dead after reconnect_grace. A node that
  // was silent before keeps its dead_after, because the break of a silent link shows nothing about
  // the node. A node that announced the break keeps it too. Returns false if it was Suspect before.
  bool lost_link(base::NodeId node, base::TimePoint now, bool was_announced = false);

  struct Change {
    base::NodeId node{0};
    Verdict verdict = Verdict::Alive;
    base::Duration silent{0};
  };

  // Returns the changes that the passing of time caused, in order of time. If the call comes more
  // than a second later than next_deadline(), the caller itself was stopped and could hear no node,
  // so that time is not counted as silence.
  std::vector<Change> advance(base::TimePoint now);
  // Returns the time at which advance() may have a change to report; it may be too early.
  [[nodiscard]] std::optional<base::TimePoint> next_deadline() const;
  // Returns Dead for nodes that are not watched.
  [[nodiscard]] Verdict verdict(base::NodeId node) const;

 private:
  struct Watched {
    base::TimePoint heard{};
    base::TimePoint heard_directly{};  // like heard, without reports by others
    base::TimePoint queued{};          // its key in queue_
    Verdict verdict = Verdict::Alive;
    bool linked = true;
    base::TimePoint deaf_until{};
    std::optional<base::TimePoint> deadline;  // of Dead, instead of heard + dead_after
  };

  [[nodiscard]] base::TimePoint due(const Watched& watched) const;
  void requeue(base::NodeId node, Watched& watched);
  void shift_times(base::Duration time);

  Limits limits_;
  std::map<base::NodeId, Watched> nodes_;
  std::set<std::pair<base::TimePoint, base::NodeId>> queue_;  // may be early, never late
};

}  // namespace score::gang
