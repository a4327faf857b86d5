#pragma once
// RowPlaces counts the rows of the matrix in which each user has jobs, so that no user has all of
// them (docs/adr/0122). A job belongs to several classes of jobs, and each class has its own limit:
// there are rows that only some jobs may hold, and a user must not have all rows of any class.

#include "base/ids.hpp"
#include "gang/state/job.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace score::gang {

class RowPlaces {
 public:
  static constexpr std::size_t kClasses = 3;

  using Classes = std::array<bool, kClasses>;        // [class]: the job is in it
  using Limits = std::array<std::size_t, kClasses>;  // [class]: rows per user

  void take(base::UserId user, RowId row, const Classes& classes);
  void give_back(base::UserId user, RowId row, const Classes& classes);

  // Returns whether a job of the user may be in the row; nullopt: a new one. `home` is the row that
  // it leaves for it, if it has one.
  [[nodiscard]] bool may_take(base::UserId user, std::optional<RowId> row,
                              std::optional<RowId> home, const Classes& classes,
                              const Limits& limits) const;
  // Returns true if the user has as many rows of some class as one may have.
  [[nodiscard]] bool has_all(base::UserId user, const Limits& limits) const;

  friend bool operator==(const RowPlaces&, const RowPlaces&) = default;

 private:
  using Jobs = std::array<std::uint32_t, kClasses>;  // [class]

  struct User {
    std::map<RowId, Jobs> jobs;  // of each row
    Limits rows{};               // [class]: with jobs of it

    friend bool operator==(const User&, const User&) = default;
  };

  std::map<base::UserId, User> users_;  // with jobs
};

}  // namespace score::gang
