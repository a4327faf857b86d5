#pragma once
// The table [limits] of scored.toml(5) says what users may ask for without an operator. Operators,
// root and exempt users are not limited; the caller checks that. This header is pure.

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
  std::uint32_t max_weight = limits::kDefaultWeight;         // no slices are taken from other jobs
  std::int32_t max_priority = 0;                             // a lower priority is allowed
  std::uint32_t max_jobs = 5'000;                            // per user, queued or running
  Bytes max_job_bytes = Bytes(64 * limits::kMiB);            // on disk, per user
  Bytes max_all_job_bytes = Bytes(1024 * limits::kMiB);      // on disk, of all users including root
  std::array<bool, 4> queues = {false, false, true, false};  // [base::Queue]
  Duration scout_time = 1h;         // per scout command; 0: scout is denied
  std::vector<std::string> exempt;  // users, and groups as "@group"

  // Returns the names of the queues that users may choose.
  [[nodiscard]] std::vector<std::string> queue_names() const;
};

// Reads [limits]; problems become errors of the section.
[[nodiscard]] UserLimits read_user_limits(ConfigSection& section);

// Checks a request; fails with Denied at the first limit that it breaks, and the error says how to
// get more. A scout command without a time limit gets scout_time as its limit.
[[nodiscard]] Status check_limits(const UserLimits& limits, ResourceRequest& request);
[[nodiscard]] Status check_weight(const UserLimits& limits, std::uint32_t weight);
[[nodiscard]] Status check_priority(const UserLimits& limits, std::int32_t priority);
// Checks the limit of queued and running jobs; `jobs` is how many the user already has.
[[nodiscard]] Status check_job_count(const UserLimits& limits, std::size_t jobs);
// Both functions check the bytes on disk including the new job: those of the user, and those of all
// users. The second limit applies to everyone, and its error is Busy.
[[nodiscard]] Status check_job_bytes(const UserLimits& limits, Bytes of_user);
[[nodiscard]] Status check_all_job_bytes(const UserLimits& limits, Bytes of_all);

}  // namespace score::head
