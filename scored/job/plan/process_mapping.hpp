#pragma once
// Describes the nodes of a job's ranks in the form that MPICH reads from the key
// PMI_process_mapping.

#include <cstdint>
#include <span>
#include <string>

namespace score::shepherd {

// Returns "(vector,(first node,nodes,ranks on each),...)". Each entry assigns ranks to consecutive
// nodes. The reader begins again with the first entry if the entries end before the ranks do, so
// repeated entries are written only once. nodes_of_ranks: [rank].
std::string process_mapping(std::span<const std::uint32_t> nodes_of_ranks);

}  // namespace score::shepherd
