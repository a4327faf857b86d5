#pragma once
// Where the ranks of a job live, in the form MPICH reads from the key PMI_process_mapping.

#include <cstdint>
#include <span>
#include <string>

namespace score::shepherd {

// "(vector,(first node,nodes,ranks on each),...)": each entry deals out ranks to consecutive nodes.
// The reader begins again where the entries end before the ranks do, so equal ones are said once.
// nodes_of_ranks: [rank].
std::string process_mapping(std::span<const std::uint32_t> nodes_of_ranks);

}  // namespace score::shepherd
