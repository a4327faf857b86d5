#pragma once
// Encodes the data that is exchanged when a PMIx group is created. Each node's part goes through a
// fence of the group's ranks, which concatenates the parts of all nodes in the order of the nodes,
// so every node receives the same result.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace score::pmix {

struct GroupPart {
  // The group's number, if this node is its first. No other group of the job has it.
  std::uint64_t context = 0;
  std::string name;
  std::string data;  // of this node's ranks, for their peers' libraries

  bool operator==(const GroupPart&) const = default;
};

[[nodiscard]] std::string encode_part(const GroupPart& part);

// Returns the first node's context, and the data of all nodes. Returns nullopt if `parts` is
// malformed or the parts have different group names, which happens when ranks create groups in
// different orders at the same time.
[[nodiscard]] std::optional<GroupPart> join_parts(std::string_view parts);

}  // namespace score::pmix
