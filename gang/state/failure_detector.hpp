#pragma once
// Which nodes are alive, judged by their signs of life and the time. Pure.

#include "base/ids.hpp"
#include "base/time.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace score::gang {

enum class Verdict : std::uint8_t {
  Alive,    // heard from within suspect_after, and its link is up
  Suspect,  // silent for suspect_after, or its link broke
  Dead,     // silent for dead_after, or its link stayed broken; only watch() revives it
};

class FailureDetector {
 public:
  struct Limits {
    base::Duration suspect_after{};    // silence on a link that is up
    base::Duration dead_after{};       // the same; more than suspect_after
    base::Duration reconnect_grace{};  // from the break of a link to Dead
    // What others vouch for counts for so long after the node was heard itself: its link may be
    // silent in both directions although it lives.
    base::Duration vouched_for = std::chrono::hours{24};
    base::Duration deaf_for = std::chrono::seconds{4};  // see deaf()
  };

  explicit FailureDetector(Limits limits);

  // Starts, or restarts, to watch a node; it is Alive and was heard from now.
  void watch(base::NodeId node, base::TimePoint now);
  // As watch(), but Suspect, and Dead at `deadline` unless watch() is called before.
  void expect(base::NodeId node, base::TimePoint now, base::TimePoint deadline);
  // A sign of life: O(1), or O(log n) if the node was suspected. True if that cleared a suspicion.
  // Ignored for nodes that are dead, unwatched or without a link.
  bool heard(base::NodeId node, base::TimePoint now);
  // As heard(), but another node says so, which may be mistaken for a while; see vouched_for.
  bool vouched(base::NodeId node, base::TimePoint now);
  // Other nodes have not heard it since then: what was vouched for it later does not count.
  void denied(base::NodeId node, base::TimePoint since);
  // It says that nothing which is sent to it arrives: Suspect at once. What it or others say counts
  // as a sign of life, but clears no suspicion until hears(), or for deaf_for if it says no more.
  // True: it was Alive.
  bool deaf(base::NodeId node, base::TimePoint now);
  void hears(base::NodeId node);
  // Its link broke: Suspect at once, Dead after reconnect_grace. A node that was silent before
  // keeps its dead_after: the break of a silent link says nothing about the node. So does a node
  // that announced the break. False if Suspect before.
  bool lost_link(base::NodeId node, base::TimePoint now, bool was_announced = false);

  struct Change {
    base::NodeId node{0};
    Verdict verdict = Verdict::Alive;
    base::Duration silent{0};
  };

  // What changed by the passing of time, in order of time. If the caller comes more than a second
  // later than next_deadline() it was stopped itself and could hear no node: that time is not
  // counted as silence.
  std::vector<Change> advance(base::TimePoint now);
  // When advance() may have a change to report, or earlier.
  [[nodiscard]] std::optional<base::TimePoint> next_deadline() const;
  // Dead for nodes that are not watched.
  [[nodiscard]] Verdict verdict(base::NodeId node) const;

 private:
  struct Watched {
    base::TimePoint heard{};
    base::TimePoint spoke{};   // heard, without what was vouched
    base::TimePoint queued{};  // its key in queue_
    Verdict verdict = Verdict::Alive;
    bool linked = true;
    base::TimePoint deaf_until{};
    std::optional<base::TimePoint> deadline;  // of Dead, instead of heard + dead_after
  };

  [[nodiscard]] base::TimePoint due(const Watched& watched) const;
  void requeue(base::NodeId node, Watched& watched);
  void forgive(base::Duration time);

  Limits limits_;
  std::map<base::NodeId, Watched> nodes_;
  std::set<std::pair<base::TimePoint, base::NodeId>> queue_;  // may be early, never late
};

}  // namespace score::gang
