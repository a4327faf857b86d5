#include "scored/head/config/user_limits.hpp"

#include "base/text.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace score::head {
namespace {

constexpr std::array<const char*, 4> kQueueNames = {"exclusive", "high", "normal",
                                                    "urgent"};  // [base::Queue]

Error beyond(std::string_view what, std::string_view allowed, std::string_view key) {
  return fail(Errc::Denied,
              "{}: users may ask for {} (limits.{} of the head; operators may do more)", what,
              allowed, key);
}

void read_queues(ConfigSection& section, UserLimits& limits) {
  if (!section.has("queues")) return;
  std::vector<std::string> names;
  section.read("queues", names);
  limits.queues = {};
  for (const std::string& name : names) {
    const auto found = std::find(kQueueNames.begin(), kQueueNames.end(), name);
    if (found == kQueueNames.end()) {
      section.refuse("queues", "use exclusive, high, normal, urgent");
    } else {
      limits.queues.at(static_cast<std::size_t>(found - kQueueNames.begin())) = true;
    }
  }
  if (names.empty()) section.refuse("queues", "name at least one queue");
}

}  // namespace

std::vector<std::string> UserLimits::queue_names() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    if (queues.at(i)) names.emplace_back(kQueueNames.at(i));
  }
  return names;
}

UserLimits read_user_limits(ConfigSection& section) {
  UserLimits out;
  section.read("max_weight", out.max_weight, limits::kMinWeight, limits::kMaxWeight);
  section.read("max_priority", out.max_priority, -limits::kMaxPriority, limits::kMaxPriority);
  section.read("max_jobs", out.max_jobs, 1U, limits::kMaxActiveJobs);
  section.read("max_job_bytes", out.max_job_bytes, Bytes(1));
  section.read("max_all_job_bytes", out.max_all_job_bytes, Bytes(1));
  read_queues(section, out);
  section.read("scout_time", out.scout_time, 0s, 24h * 365);
  section.read("exempt", out.exempt);
  return out;
}

Status check_weight(const UserLimits& limits, std::uint32_t weight) {
  if (weight <= limits.max_weight) return {};
  return beyond(fmt::format("weight {}", weight), fmt::format("{} at most", limits.max_weight),
                "max_weight");
}

Status check_priority(const UserLimits& limits, std::int32_t priority) {
  if (priority <= limits.max_priority) return {};
  return beyond(fmt::format("priority {}", priority),
                fmt::format("{} at most", limits.max_priority), "max_priority");
}

Status check_job_count(const UserLimits& limits, std::size_t jobs) {
  if (jobs < limits.max_jobs) return {};
  return beyond(fmt::format("{} of your jobs are queued or running", jobs),
                fmt::format("{} at most", limits.max_jobs), "max_jobs");
}

Status check_job_bytes(const UserLimits& limits, Bytes of_user) {
  if (of_user <= limits.max_job_bytes) return {};
  return beyond(
      fmt::format("your queued and running jobs would take {} of the head's disk", of_user),
      fmt::format("{} at most", limits.max_job_bytes), "max_job_bytes");
}

Status check_all_job_bytes(const UserLimits& limits, Bytes of_all) {
  if (of_all <= limits.max_all_job_bytes) return {};
  return fail(Errc::Busy,
              "the queue is full: all jobs together may take {} of the head's disk "
              "(limits.max_all_job_bytes); try again later",
              limits.max_all_job_bytes);
}

Status check_limits(const UserLimits& limits, ResourceRequest& request) {
  if (request.overlay) {
    if (limits.scout_time <= 0s) return beyond("scout", "none of it", "scout_time");
    if (request.wall_limit == 0s) request.wall_limit = limits.scout_time;
    if (request.wall_limit <= limits.scout_time) return {};
    return beyond(fmt::format("a scout command of {}", format_duration(request.wall_limit)),
                  format_duration(limits.scout_time), "scout_time");
  }
  if (!limits.queues.at(static_cast<std::size_t>(request.queue))) {
    const std::string name = kQueueNames.at(static_cast<std::size_t>(request.queue));
    return beyond("queue " + name, fmt::format("{}", fmt::join(limits.queue_names(), ", ")),
                  "queues");
  }
  if (auto weight = check_weight(limits, request.weight); !weight) return weight;
  return check_priority(limits, request.priority);
}

}  // namespace score::head
