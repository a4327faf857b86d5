#pragma once
// kShares lists the tables whose places users fill: places of a node, connections, viewers. Each
// gives a user only a part of its places, so that no user can shut the others out (docs/adr/0107).
// A table without users, and a table of one job, is not listed. docs/reference/limits.md explains
// the rows, and tests/shares fills each of them. This header is pure.

#include "base/ids.hpp"
#include "base/limits.hpp"

#include <array>
#include <cstddef>
#include <map>
#include <string_view>

namespace score::inline base {

struct Share {
  std::string_view name;  // of what takes a place, in the plural
  std::size_t places = 0;
  std::size_t per_user = 0;
};

namespace shares {

// ---- a node: each job also takes a place of the rows above its own
inline constexpr Share kNodeJobs{"jobs and steps on a node", limits::kMaxJobsPerNode, 192};
// The places that these leave free are for jobs with a row of the matrix: one for each row.
inline constexpr Share kNodeSteps{
    "steps and scout commands on a node",
    limits::kMaxJobsPerNode - limits::kMaxSlots - limits::kMaxUrgentSlots, 128};
inline constexpr Share kNodeScouts{"scout commands and overlapping steps on a node", 96, 32};
static_assert(kNodeSteps.places < kNodeJobs.places && kNodeSteps.per_user < kNodeJobs.per_user);
static_assert(kNodeScouts.places < kNodeSteps.places && kNodeScouts.per_user < kNodeSteps.per_user);

// ---- the matrix: with fewer slots, see rows_of_user()
inline constexpr Share kRows{"rows of the matrix", limits::kMaxSlots, 56};

// Returns how many of these rows one user's jobs may have. A small matrix has no rows to spare.
[[nodiscard]] constexpr std::size_t rows_of_user(std::size_t rows) {
  return rows < 16 ? rows : rows - rows / 8;
}

static_assert(rows_of_user(kRows.places) == kRows.per_user);

// ---- the head
inline constexpr Share kJobs{"queued and running jobs", limits::kMaxActiveJobs, 5'000};
inline constexpr Share kSteps{"queued and running steps", limits::kMaxActiveJobs, 5'000};
inline constexpr Share kSubmissions{"submissions that are being stored",
                                    4 * limits::kMaxGroupCommit, limits::kMaxGroupCommit};
inline constexpr Share kClients{"connections of commands to the head", limits::kMaxConnections,
                                limits::kMaxConnectionsPerUser};
inline constexpr Share kKeptOutputs{"ended jobs whose output is kept", 4'096, 1'024};
inline constexpr Share kMails{"mails that wait to be sent", 1'024, 256};
inline constexpr Share kWebhookNotices{"notices that wait for a webhook", 1'024, 512};
// This holds for traces and for facts of hosts; the monitor counts as one user.
inline constexpr Share kPolls{"requests to all nodes", 8, 2};

// ---- login nodes
inline constexpr Share kLogins{"commands through a login node", limits::kMaxLogins,
                               limits::kMaxLoginsPerUser};

// ---- the monitor; a viewer without a login counts for its address
inline constexpr Share kViewers{"viewers of the monitor", 1'024, 256};
inline constexpr Share kFilters{"different filters of viewers", 32, 8};
inline constexpr Share kWebTokens{"unused addresses of score web", 256, 8};
inline constexpr Share kWebSessions{"sessions of browsers", 1'024, 32};
inline constexpr Share kPersonalTokens{"personal tokens", 4'096, 32};

}  // namespace shares

inline constexpr std::array kShares = {
    shares::kNodeJobs,    shares::kNodeSteps,      shares::kNodeScouts,     shares::kRows,
    shares::kJobs,        shares::kSteps,          shares::kSubmissions,    shares::kClients,
    shares::kKeptOutputs, shares::kMails,          shares::kWebhookNotices, shares::kPolls,
    shares::kLogins,      shares::kViewers,        shares::kFilters,        shares::kWebTokens,
    shares::kWebSessions, shares::kPersonalTokens,
};

// Counts the places that are taken, in all and per owner. `Owner` identifies a user.
template <class Owner = UserId>
class ShareCounter {
 public:
  explicit ShareCounter(Share share) : share_(share) {}

  [[nodiscard]] const Share& share() const { return share_; }

  [[nodiscard]] std::size_t taken() const { return taken_; }

  [[nodiscard]] std::size_t taken_by(const Owner& owner) const {
    const auto found = owners_.find(owner);
    return found == owners_.end() ? 0 : found->second;
  }

  // Returns whether the owner has as many places as one may have.
  [[nodiscard]] bool has_all(const Owner& owner) const {
    return taken_ >= share_.per_user && taken_by(owner) >= share_.per_user;
  }

  // Returns whether the owner may take a place now.
  [[nodiscard]] bool has_place(const Owner& owner) const {
    return taken_ < share_.places && !has_all(owner);
  }

  // Counts a place even if has_place() is false: a restarted daemon finds what it finds.
  void take(const Owner& owner) {
    ++owners_[owner];
    ++taken_;
  }

  // The owner must have a place.
  void give_back(const Owner& owner) {
    const auto found = owners_.find(owner);
    if (found == owners_.end()) return;
    if (--found->second == 0) owners_.erase(found);
    --taken_;
  }

  friend bool operator==(const ShareCounter& a, const ShareCounter& b) {
    return a.owners_ == b.owners_;
  }

 private:
  Share share_;
  std::map<Owner, std::size_t> owners_;
  std::size_t taken_ = 0;
};

}  // namespace score::inline base
