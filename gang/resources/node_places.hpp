#pragma once
// NodePlaces counts the places of one node per user. A node holds a limited number of jobs, and a
// job without a row of the matrix costs its user nothing else. So the kinds have shares: those that
// take less leave places to those that take more (docs/adr/0107).

#include "base/shares.hpp"
#include "gang/state/job.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace score::gang {

// A job of one kind also takes a place of the kinds before it.
enum class PlaceKind : std::uint8_t {
  Gang,   // has a row of the matrix
  Step,   // has cores of the job that it is in
  Scout,  // takes no cores: a scout command, or a step that overlaps others
};

[[nodiscard]] PlaceKind place_kind(const Job& job);

class NodePlaces {
 public:
  [[nodiscard]] bool has_place(base::UserId user, PlaceKind kind) const {
    return first_full(user, kind) == nullptr;
  }

  // Returns the limit that leaves the user no place, as text for users; "" if there is a place.
  [[nodiscard]] std::string why_full(base::UserId user, PlaceKind kind) const;

  // Returns whether the user has as many places as one may have, whatever their kind.
  [[nodiscard]] bool has_all(base::UserId user) const { return counters_[0].has_all(user); }

  void take(base::UserId user, PlaceKind kind);
  void give_back(base::UserId user, PlaceKind kind);

  friend bool operator==(const NodePlaces&, const NodePlaces&) = default;

 private:
  using Counter = base::ShareCounter<base::UserId>;

  [[nodiscard]] const Counter* first_full(base::UserId user, PlaceKind kind) const;

  std::array<Counter, 3> counters_ = {Counter(base::shares::kNodeJobs),
                                      Counter(base::shares::kNodeSteps),
                                      Counter(base::shares::kNodeScouts)};
};

}  // namespace score::gang
