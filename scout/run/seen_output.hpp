// Records which output a front end has printed, so that it prints nothing twice. A restarted head
// resends the output that was in flight from its nodes, and a new attachment gets the stored
// output. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace score::scout {

class SeenOutput {
 public:
  struct Piece {
    std::uint64_t attempt = 0;  // 0: not from a task, always new
    std::uint32_t node_index = 0;
    std::uint64_t offset = 0;  // of its first byte in all output of this node and attempt
    std::size_t bytes = 0;
  };

  // Marks the piece as seen. Returns how many of its first bytes were seen before.
  std::size_t see(const Piece& piece) {
    if (piece.attempt == 0) return 0;
    std::uint64_t& end = end_[{piece.attempt, piece.node_index}];
    const std::uint64_t before = end > piece.offset ? end - piece.offset : 0;
    end = std::max(end, piece.offset + piece.bytes);
    return static_cast<std::size_t>(std::min<std::uint64_t>(before, piece.bytes));
  }

 private:
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> end_;  // by attempt and node
};

}  // namespace score::scout
