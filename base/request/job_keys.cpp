#include "base/request/job_keys.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace score::inline base {
namespace {

constexpr std::array kKeys = std::to_array<JobKeyRule>({
    {JobKey::Time, "time", "time", "TIME", true, true},
    {JobKey::ElapsedTime, "wall-time", "wall-time", "TIME", true, true},
    {JobKey::Queue, "queue", "queue", "QUEUE", true},
    {JobKey::Name, "name", "job-name", "NAME", true},
    {JobKey::Requeue, "requeue", "requeue", "yes|no", true},
    {JobKey::Signal, "signal", "signal", "[B:]SIG[@TIME]", true, true},
    {JobKey::Nodes, "nodes", "nodes", "N[-MAX]", false, true},
    {JobKey::Tasks, "ntasks", "ntasks", "N"},
    {JobKey::TasksPerNode, "ntasks-per-node", "ntasks-per-node", "N", false, true},
    {JobKey::CpusPerTask, "cpus-per-task", "cpus-per-task", "N"},
    {JobKey::Memory, "mem", "mem", "SIZE", false, true},
    {JobKey::NodeList, "nodelist", "nodelist", "NODES", false, true},
    {JobKey::Exclude, "exclude", "exclude", "NODES", false, true},
    {JobKey::Constraint, "constraint", "constraint", "FEATURES", false, true},
    {JobKey::Gres, "gres", "gres", "NAME[:N]", false, true},
    {JobKey::After, "after", "after", "LIST", false, true},
    {JobKey::Begin, "begin", "begin", "TIME", false, true},
    {JobKey::Deadline, "deadline", "deadline", "TIME", false, true},
    {JobKey::Account, "account", "account", "NAME", false, true},
    {JobKey::Reservation, "reservation", "reservation", "NAME", false, true},
    {JobKey::Weight, "weight", "weight", "N", true},
    {JobKey::Priority, "priority", "priority", "N", true},
});

static_assert(
    [] {
      for (std::size_t i = 0; i < kKeys.size(); ++i) {
        if (static_cast<std::size_t>(kKeys.at(i).key) != i) return false;
      }
      return true;
    }(),
    "the rows are ordered by JobKey");

}  // namespace

std::span<const JobKeyRule> job_keys() {
  return kKeys;
}

const JobKeyRule* find_job_key(std::uint32_t number) {
  return number < kKeys.size() ? &kKeys.at(number) : nullptr;
}

const JobKeyRule* find_job_key(std::string_view name) {
  const auto found = std::ranges::find_if(
      kKeys, [name](const JobKeyRule& rule) { return rule.name == name || rule.option == name; });
  return found == kKeys.end() ? nullptr : &*found;
}

}  // namespace score::inline base
