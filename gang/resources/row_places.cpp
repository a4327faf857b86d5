// This file is tested by gang/head/places_test.cpp and tests/shares/shares_test.cpp.
#include "gang/resources/row_places.hpp"

namespace score::gang {

void RowPlaces::take(base::UserId user, RowId row, const Classes& classes) {
  if (classes == Classes{}) return;  // it is not counted
  User& of = users_[user];
  Jobs& jobs = of.jobs[row];
  for (std::size_t i = 0; i < kClasses; ++i) {
    if (classes.at(i) && jobs.at(i)++ == 0) ++of.rows.at(i);
  }
}

void RowPlaces::give_back(base::UserId user, RowId row, const Classes& classes) {
  const auto of = users_.find(user);
  if (of == users_.end()) return;
  const auto jobs = of->second.jobs.find(row);
  if (jobs == of->second.jobs.end()) return;
  for (std::size_t i = 0; i < kClasses; ++i) {
    if (classes.at(i) && --jobs->second.at(i) == 0) --of->second.rows.at(i);
  }
  if (jobs->second == Jobs{}) of->second.jobs.erase(jobs);
  if (of->second.jobs.empty()) users_.erase(of);
}

bool RowPlaces::may_take(base::UserId user, std::optional<RowId> row, std::optional<RowId> home,
                         const Classes& classes, const Limits& limits) const {
  const auto found = users_.find(user);
  if (found == users_.end()) return true;
  const User& of = found->second;
  const auto jobs_in = [&](std::optional<RowId> which) {
    const auto jobs = which ? of.jobs.find(*which) : of.jobs.end();
    return jobs == of.jobs.end() ? Jobs{} : jobs->second;
  };
  const Jobs there = jobs_in(row);
  const Jobs left = jobs_in(home);
  for (std::size_t i = 0; i < kClasses; ++i) {
    if (!classes.at(i) || there.at(i) > 0) continue;
    const std::size_t given_up = left.at(i) == 1 ? 1 : 0;
    if (of.rows.at(i) >= limits.at(i) + given_up) return false;
  }
  return true;
}

bool RowPlaces::has_all(base::UserId user, const Limits& limits) const {
  const auto found = users_.find(user);
  if (found == users_.end()) return false;
  for (std::size_t i = 0; i < kClasses; ++i) {
    if (found->second.rows.at(i) >= limits.at(i)) return true;
  }
  return false;
}

}  // namespace score::gang
