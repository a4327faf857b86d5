#pragma once
// What users may ask for without an operator: the table [limits] of scored.toml(5). Pure.
// They do not apply to operators, root and exempt users; the caller checks that.

#include "base/config/config.hpp"
#include "base/limits.hpp"
#include "base/model/model.hpp"
#include "base/result.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace score::head {

struct UserLimits {
  std::uint32_t max_weight = limits::kDefaultWeight;     // no user takes slices from others
  std::int32_t max_priority = 0;                         // lower is allowed: "later than others"
  std::uint32_t max_jobs = 5'000;                        // of one user, queued or running
  Bytes max_job_bytes = Bytes(64 * limits::kMiB);        // on disk, of one user's jobs
  Bytes max_all_job_bytes = Bytes(1024 * limits::kMiB);  // of all users', root's and operators' too
  std::array<bool, 4> queues = {false, false, true, false};  // [base::Queue]
  Duration scout_time = 1h;                                  // of one command of scout; 0: none
  std::vector<std::string> exempt;                           // users, and groups as "@group"

  // The names of the queues that users may choose.
  [[nodiscard]] std::vector<std::string> queue_names() const;
};

// Problems are the section's.
[[nodiscard]] UserLimits read_user_limits(ConfigSection& section);

// The first limit that the request breaks, as an error (Denied) that names it and the way to get
// more. A command of scout without a limit of its own gets scout_time for it.
[[nodiscard]] Status hold_to_limits(const UserLimits& limits, ResourceRequest& request);
[[nodiscard]] Status check_weight(const UserLimits& limits, std::uint32_t weight);
[[nodiscard]] Status check_priority(const UserLimits& limits, std::int32_t priority);
// jobs: those the user has already.
[[nodiscard]] Status check_job_count(const UserLimits& limits, std::size_t jobs);
// What the user has, and what all users have, with the new job. The second counts for everyone;
// its error is Busy.
[[nodiscard]] Status check_job_bytes(const UserLimits& limits, Bytes of_user);
[[nodiscard]] Status check_all_job_bytes(const UserLimits& limits, Bytes of_all);

}  // namespace score::head
