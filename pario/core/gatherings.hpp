// Coordinated access: all ranks of a group tell the home of the file how their part went, and all
// get the same answer when the last one has. Pure.
//
// A rank whose connection ends while it waits, one that says something else than the others, and
// one that does not come within kPatienceMs fails the gathering: the others get ECANCELED (or
// ETIMEDOUT) at once, also those that come later, as long as it is remembered.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace score::pario {

class Gatherings {
 public:
  static constexpr std::int64_t kPatienceMs = 60'000;
  static constexpr std::size_t kMost = 4'096;  // gatherings, also those that are remembered
  static constexpr std::uint32_t kMostRanks = 1U << 20;

  struct Key {
    std::uint64_t group = 0;
    std::uint32_t sequence = 0;  // of the calls of the group

    friend auto operator<=>(const Key&, const Key&) = default;
  };

  struct Join {
    Key key;
    std::uint32_t rank = 0;
    std::uint32_t size = 0;
    int error = 0;  // of the rank's own part
  };

  // What a request is answered with; tokens are the caller's.
  struct Answer {
    std::uint64_t token = 0;
    int error = 0;

    friend bool operator==(const Answer&, const Answer&) = default;
  };

  // Answers that are due now, perhaps that of `token` itself. EINVAL: another size, or a rank that
  // is there already. ENOBUFS: too many gatherings.
  std::vector<Answer> join(const Join& join, std::uint64_t token, std::int64_t now_ms);
  // The rank that waits for `token` is gone; it gets an answer too.
  std::vector<Answer> leave(std::uint64_t token, std::int64_t now_ms);
  // Ends those that have waited for too long.
  std::vector<Answer> tick(std::int64_t now_ms);

  std::size_t size() const { return open_.size(); }

 private:
  struct Gathering {
    std::uint32_t size = 0;
    int error = 0;  // the first one of a rank
    int failed = 0;
    std::int64_t since_ms = 0;
    std::map<std::uint32_t, std::uint64_t> tokens{};  // by rank
  };

  static std::vector<Answer> fail(Gathering& gathering, int error, std::int64_t now_ms);

  std::map<Key, Gathering> open_;
};

}  // namespace score::pario
