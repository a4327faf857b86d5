#include "scored/head/jobs/conditions.hpp"

#include "proto/client.pb.h"
#include "proto/convert/fields.hpp"
#include "proto/frames/parse.hpp"
#include "proto/waits_values_code.inc"

#include <array>

namespace score::head {
namespace {

constexpr Duration kMostDelay = std::chrono::hours(24 * 366);

}  // namespace

std::string pack_conditions(const Conditions& conditions) {
  return proto::to_wire(conditions).SerializeAsString();
}

Result<Conditions> unpack_conditions(std::string_view bytes) {
  const auto message = proto::parse<wire::JobConditions>(bytes, "conditions of a job");
  if (!message) return message.error();
  if (static_cast<std::size_t>(message->after_size()) > kMaxDependencies) {
    return fail(Errc::TooLarge, "the job waits for {} jobs; at most {} are possible",
                message->after_size(), kMaxDependencies);
  }
  auto conditions = proto::from_wire(*message);
  if (!conditions) return conditions;
  for (const Dependency& dependency : conditions->after) {
    const bool may_have_delay = dependency.kind == After::Started && !conditions->any;
    if (dependency.delay > (may_have_delay ? kMostDelay : Duration{0})) {
      return fail(Errc::Malformed, "{}: a delay is at most a year, after a start only",
                  name_of(dependency));
    }
  }
  return conditions;
}

std::string name_of(const Dependency& dependency) {
  constexpr std::array<std::string_view, 4> kNames = {"after", "afterany", "afterok", "afternotok"};
  std::string name =
      fmt::format("{}:{}", kNames.at(static_cast<std::size_t>(dependency.kind)), dependency.job);
  if (dependency.delay > Duration{0}) {
    name += fmt::format("+{}",
                        std::chrono::duration_cast<std::chrono::minutes>(dependency.delay).count());
  }
  return name;
}

}  // namespace score::head
