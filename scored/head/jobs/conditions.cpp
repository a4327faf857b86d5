#include "scored/head/jobs/conditions.hpp"

#include "proto/client.pb.h"

#include <array>

namespace score::head {

std::string pack_conditions(const Conditions& conditions) {
  wire::JobConditions out;
  for (const Dependency& dependency : conditions.after) {
    wire::Dependency& added = *out.add_after();
    added.set_kind(static_cast<wire::Dependency::Kind>(dependency.kind));
    added.set_job(dependency.job.value());
  }
  out.set_singleton(conditions.singleton);
  out.set_begin_wall_ns(conditions.begin.time_since_epoch().count());
  out.set_deadline_wall_ns(conditions.deadline.time_since_epoch().count());
  out.set_end_if_never(conditions.end_if_never);
  return out.SerializeAsString();
}

Result<Conditions> unpack_conditions(std::string_view bytes) {
  wire::JobConditions message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return fail(Errc::Malformed, "cannot read the conditions of the job");
  }
  if (static_cast<std::size_t>(message.after_size()) > kMaxDependencies) {
    return fail(Errc::TooLarge, "the job waits for {} jobs; at most {} are possible",
                message.after_size(), kMaxDependencies);
  }
  Conditions conditions;
  for (const wire::Dependency& dependency : message.after()) {
    if (!wire::Dependency::Kind_IsValid(dependency.kind()) || dependency.job() == 0) {
      return fail(Errc::Malformed, "unknown kind of dependency {} on job {}",
                  static_cast<int>(dependency.kind()), dependency.job());
    }
    conditions.after.push_back({static_cast<After>(dependency.kind()), JobId(dependency.job())});
  }
  if (message.begin_wall_ns() < 0 || message.deadline_wall_ns() < 0) {
    return fail(Errc::Malformed, "the begin or the deadline is before 1970");
  }
  conditions.singleton = message.singleton();
  conditions.begin = WallTime(Duration(message.begin_wall_ns()));
  conditions.deadline = WallTime(Duration(message.deadline_wall_ns()));
  conditions.end_if_never = message.end_if_never();
  return conditions;
}

std::string name_of(const Dependency& dependency) {
  constexpr std::array<std::string_view, 4> kNames = {"after", "afterany", "afterok", "afternotok"};
  return fmt::format("{}:{}", kNames.at(static_cast<std::size_t>(dependency.kind)), dependency.job);
}

}  // namespace score::head
