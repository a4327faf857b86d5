// This file is tested by gang/head/places_test.cpp and tests/shares/shares_test.cpp.
#include "gang/resources/node_places.hpp"

#include <fmt/format.h>

namespace score::gang {

PlaceKind place_kind(const Job& job) {
  if (job.has_row()) return PlaceKind::Gang;
  return job.overlay() || job.request.overlap ? PlaceKind::Scout : PlaceKind::Step;
}

const NodePlaces::Counter* NodePlaces::first_full(base::UserId user, PlaceKind kind) const {
  for (std::size_t i = 0; i <= static_cast<std::size_t>(kind); ++i) {
    if (!counters_.at(i).has_place(user)) return &counters_.at(i);
  }
  return nullptr;
}

std::string NodePlaces::why_full(base::UserId user, PlaceKind kind) const {
  const Counter* full = first_full(user, kind);
  if (full == nullptr) return {};
  const base::Share& share = full->share();
  if (full->has_all(user)) {
    return fmt::format("the limit per user is {} {}", share.per_user, share.name);
  }
  return fmt::format("the limit is {} {}", share.places, share.name);
}

void NodePlaces::take(base::UserId user, PlaceKind kind) {
  for (std::size_t i = 0; i <= static_cast<std::size_t>(kind); ++i) counters_.at(i).take(user);
}

void NodePlaces::give_back(base::UserId user, PlaceKind kind) {
  for (std::size_t i = 0; i <= static_cast<std::size_t>(kind); ++i) counters_.at(i).give_back(user);
}

}  // namespace score::gang
