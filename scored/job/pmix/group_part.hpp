#pragma once
// What the nodes of a PMIx group exchange when the group is made. Each node's part goes
// through a fence of the group's ranks, which puts the parts of all nodes behind each other, in the
// nodes' order; so every node finds the same whole.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace score::pmix {

struct GroupPart {
  // Of the group, if this node is its first: no other group of the job has it.
  std::uint64_t context = 0;
  std::string name;
  std::string data;  // of this node's ranks, for their peers' libraries

  bool operator==(const GroupPart&) const = default;
};

[[nodiscard]] std::string encode_part(const GroupPart& part);

// The first node's context, and the data of all. Nothing if `parts` is broken, or of groups with
// different names: then ranks have made groups in different orders at the same time.
[[nodiscard]] std::optional<GroupPart> join_parts(std::string_view parts);

}  // namespace score::pmix
