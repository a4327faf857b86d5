#pragma once
// A StackTree merges call stacks: frames that are called from the same frames are one node, which
// knows the ranks whose stacks end there. It is made from stacks, or from trees of other processes,
// whose contents are not trusted.

#include "base/result.hpp"
#include "proto/stacks.pb.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace score::proto {

struct StackFrame {
  std::string function;
  std::string place;  // as in wire::StackTree
};

class StackTree {
 public:
  static constexpr std::size_t kMaxFrames = 4'096;  // of a tree
  static constexpr std::size_t kMaxDepth = 128;
  static constexpr std::size_t kMaxTextBytes = 200;  // longer texts are cut
  static constexpr std::size_t kMaxProblems = 64;
  // Ranks that the frames of a tree list, all lists together, per rank that it may list.
  static constexpr std::size_t kMaxPlacesPerRank = 256;
  static constexpr std::size_t kMaxNodeBytes = 1UL << 20;  // of the tree of a node
  static constexpr std::size_t kMaxJobBytes = 12UL << 20;  // of the tree of a job

  // Adds the stack of a thread, its outermost frame first. A stack without frames is ignored; of
  // one that is too deep the outer frames are kept.
  void add(std::span<const StackFrame> stack, std::uint32_t rank);
  // Records why the stacks of a rank are missing.
  void add_problem(std::uint32_t rank, std::string_view text);

  // Adds a tree of at most `count` ranks, which are below `tasks`. Errors: Malformed, TooLarge;
  // then nothing is added.
  base::Status merge(const wire::StackTree& other, std::uint32_t tasks, std::size_t count);

  // Leaves out frames beyond the size, and counts their stacks as dropped.
  [[nodiscard]] wire::StackTree to_wire(std::size_t max_bytes) const;

 private:
  struct Frame {
    std::size_t parent = 0;  // 1 + index; 0: outermost
    StackFrame frame;
    std::set<std::uint32_t> ranks;
    std::uint32_t threads = 0;
  };

  // Returns 1 + index of the frame, which is made if there is room; 0 otherwise.
  std::size_t find_or_add(std::size_t parent, const StackFrame& frame);

  std::vector<Frame> frames_;
  std::map<std::tuple<std::size_t, std::string, std::string>, std::size_t> places_;
  std::map<std::string, std::set<std::uint32_t>> problems_;
  std::uint32_t dropped_ = 0;
};

// Returns the set as "0-3,7".
[[nodiscard]] std::string rank_list(const std::set<std::uint32_t>& ranks);
// Reads such a list of ranks below `tasks`. Errors: Malformed, TooLarge (more than `most`).
[[nodiscard]] base::Result<std::set<std::uint32_t>> parse_ranks(std::string_view text,
                                                                std::uint32_t tasks,
                                                                std::size_t most = SIZE_MAX);

}  // namespace score::proto
