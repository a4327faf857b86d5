#pragma once
// PMI barriers that span nodes. Each node of an attempt enters a fence with what its ranks put
// since the last one; when all have, everybody gets everything. Pure: no I/O, sizes are bounded.
//
// A node whose connection broke enters again: the same fence twice counts once, and a fence that
// was done is answered again to the node that asks. A node whose tasks have all ended is passed
// over.

#include "base/ids.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace score::head {

class FenceBoard {
 public:
  struct Done {
    std::uint64_t sequence = 0;
    std::string key_values;  // of all nodes, in the order of their index
    bool for_all = true;     // false: only for the node that asked again
  };

  // From then on the attempt's nodes 0 ... nodes-1 may enter. Again: no change.
  void open(AttemptId attempt, std::size_t nodes);
  // The end of the attempt; everything of it is dropped. Unknown: no change.
  void close(AttemptId attempt);

  // nullopt: others are still missing. Errors: NotFound (attempt not open, no such node in it),
  // WrongState (a fence before the last one done, or nodes in different fences: the job cannot go
  // on), TooLarge (all key-values together exceed a frame: the job cannot go on).
  [[nodiscard]] Result<std::optional<Done>> enter(AttemptId attempt, std::size_t node_index,
                                                  std::uint64_t sequence, std::string key_values);

  // The node's tasks have all ended: no fence waits for it. Returns a fence that this completes.
  // Attempt not open, no such node in it, or again: no change.
  [[nodiscard]] std::optional<Done> leave(AttemptId attempt, std::size_t node_index);

  [[nodiscard]] std::size_t open_attempts() const { return boards_.size(); }

 private:
  struct Board {
    std::vector<std::optional<std::string>> entered;  // [node index], of `sequence`
    std::vector<bool> left;                           // [node index]
    std::size_t count = 0;                            // of `entered`
    std::size_t absent = 0;                           // nodes that left and are not in `entered`
    std::size_t bytes = 0;
    std::uint64_t sequence = 0;  // meaningful if count > 0
    std::optional<Done> last;
  };

  // Done if it has begun and no node is missing.
  static std::optional<Done> try_finish(Board& board);

  std::map<AttemptId, Board> boards_;
};

}  // namespace score::head
