// Implements coordinated access: all ranks of a group send the result of their part to the home of
// the file, and all get the same answer when the last one has sent its result. This class is pure.
//
// A rank barrier fails if a rank's connection ends while it waits, if a rank disagrees with the
// others, or if a rank does not arrive within kTimeoutMs. The other ranks get ECANCELED (or
// ETIMEDOUT) at once. So do those that arrive later, as long as the rank barrier is remembered.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace score::pario {

class RankBarriers {
 public:
  static constexpr std::int64_t kTimeoutMs = 60'000;
  static constexpr std::size_t kMost = 4'096;  // rank barriers, including those that are remembered
  static constexpr std::uint32_t kMostRanks = 1U << 20;

  struct Key {
    std::uint64_t group = 0;
    std::uint32_t sequence = 0;  // number of the group's call

    friend auto operator<=>(const Key&, const Key&) = default;
  };

  struct Join {
    Key key;
    std::uint32_t rank = 0;
    std::uint32_t size = 0;
    int error = 0;  // of the rank's own part
  };

  // An answer goes to a request; tokens are chosen by the caller.
  struct Answer {
    std::uint64_t token = 0;
    int error = 0;

    friend bool operator==(const Answer&, const Answer&) = default;
  };

  // Returns the answers that are due now, which may include that of `token` itself. EINVAL: a
  // different size, or a rank that has already joined. ENOBUFS: too many rank_barriers.
  std::vector<Answer> join(const Join& join, std::uint64_t token, std::int64_t now_ms);
  // Handles the end of the rank that waits for `token`; it gets an answer too.
  std::vector<Answer> leave(std::uint64_t token, std::int64_t now_ms);
  // Ends rank barriers that have waited for too long.
  std::vector<Answer> tick(std::int64_t now_ms);

  std::size_t size() const { return open_.size(); }

 private:
  struct RankBarrier {
    std::uint32_t size = 0;
    int error = 0;  // the first error of a rank
    int failed = 0;
    std::int64_t since_ms = 0;
    std::map<std::uint32_t, std::uint64_t> tokens{};  // by rank
  };

  static std::vector<Answer> fail(RankBarrier& rank_barrier, int error, std::int64_t now_ms);

  std::map<Key, RankBarrier> open_;
};

}  // namespace score::pario
