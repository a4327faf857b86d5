#include "scored/job/probe/pair_rounds.hpp"

#include <algorithm>

namespace score::probe {
namespace {

// An odd number of ranks gets one extra chair; the rank that meets it pauses.
std::uint32_t chairs(std::uint32_t ranks) {
  return ranks + ranks % 2;
}

}  // namespace

std::uint32_t round_count(std::uint32_t ranks) {
  return ranks < 2 ? 0 : std::min(chairs(ranks) - 1, kMostRounds);
}

// In the round (i + j) mod (n - 1), i and j of the first n - 1 chairs meet, where n is the number
// of chairs. A rank that would meet itself meets the last chair.
std::optional<std::uint32_t> partner(std::uint32_t rank, std::uint32_t round, std::uint32_t ranks) {
  const std::uint64_t turns = chairs(ranks) - 1;
  const std::uint64_t turn = round * turns / round_count(ranks);
  std::uint64_t other = 0;
  if (rank == turns) {
    // This solves 2 * other = turn (mod turns), where turns is odd.
    other = (turn % 2 == 0 ? turn : turn + turns) / 2;
  } else {
    other = (turn + turns - rank) % turns;
    if (other == rank) other = turns;
  }
  if (other >= ranks) return std::nullopt;
  return static_cast<std::uint32_t>(other);
}

}  // namespace score::probe
