#pragma once
// FenceCollector manages PMI barriers (fences) that span nodes. Each node of an attempt enters a
// fence with the key-values that its ranks put since the last one. When all nodes have entered,
// each node gets all key-values. The class is pure: it does no I/O, and its sizes are bounded.
//
// A node whose connection broke enters again. Entering the same fence twice counts once, and the
// result of a finished fence is sent again to the node that asks. A node whose tasks have all ended
// is skipped.

#include "base/ids.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace score::head {

class FenceCollector {
 public:
  struct Done {
    std::uint64_t sequence = 0;
    std::string key_values;  // of all nodes, in the order of their index
    bool for_all = true;     // false: only for the node that asked again
  };

  // Lets the attempt's nodes 0 ... nodes-1 enter. A second call changes nothing.
  void open(AttemptId attempt, std::size_t nodes);
  // Drops all state of an attempt that has ended; an unknown attempt is ignored.
  void close(AttemptId attempt);

  // Returns nullopt while nodes are missing. Errors: NotFound (attempt not open, no such node in
  // it), WrongState (a fence before the last finished one, or nodes in different fences), TooLarge
  // (all key-values together exceed a frame). After WrongState for different fences, and after
  // TooLarge, the job cannot continue.
  [[nodiscard]] Result<std::optional<Done>> enter(AttemptId attempt, std::size_t node_index,
                                                  std::uint64_t sequence, std::string key_values);

  // Records that the node's tasks have all ended, so no fence waits for it. Returns a fence that
  // this completes. Nothing changes if the attempt is not open, the node is not in it, or the call
  // is repeated.
  [[nodiscard]] std::optional<Done> leave(AttemptId attempt, std::size_t node_index);

  [[nodiscard]] std::size_t open_attempts() const { return collectors_.size(); }

 private:
  struct Collection {
    std::vector<std::optional<std::string>> entered;  // of `sequence`; by node index
    std::vector<bool> left;                           // by node index
    std::size_t count = 0;                            // of `entered`
    std::size_t absent = 0;                           // nodes that left and are not in `entered`
    std::size_t bytes = 0;
    std::uint64_t sequence = 0;  // meaningful if count > 0
    std::optional<Done> last;
  };

  // Finishes the fence if it has begun and no node is missing.
  static std::optional<Done> try_finish(Collection& collector);

  std::map<AttemptId, Collection> collectors_;
};

}  // namespace score::head
