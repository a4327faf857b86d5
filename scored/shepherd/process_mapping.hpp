#pragma once
// Where the ranks of a job live, in the form MPICH reads from the key PMI_process_mapping.

#include <cstdint>
#include <span>
#include <string>

namespace score::shepherd {

// "(vector,(first node,nodes,tasks on each),...)", runs of equal nodes joined; ranks ascend block
// by block as the nodes do. tasks_on_node: [node index]; nodes without tasks are left out.
std::string process_mapping(std::span<const std::uint32_t> tasks_on_node);

}  // namespace score::shepherd
