#include "base/limits.hpp"
#include "proto/convert/convert.hpp"
#include "proto/convert/placed_tasks.hpp"
#include "proto/frames/field_check.hpp"

#include <limits>
#include <utility>

namespace score::proto {

namespace limits = base::limits;
using base::Result;

namespace {

// Pids 0 and 1 cannot be tasks and must never be signalled.
Result<std::vector<pid_t>> take_pids(std::string_view message,
                                     const google::protobuf::RepeatedField<std::int64_t>& pids) {
  FieldCheck check(message);
  check.at_most("pids", static_cast<std::size_t>(pids.size()), limits::kMaxTasksPerNode);
  std::vector<pid_t> out;
  for (std::int64_t pid : pids) {
    check.within("pids", pid, 2, std::numeric_limits<pid_t>::max());
    if (!check.ok()) return check.error();
    out.push_back(static_cast<pid_t>(pid));
  }
  if (!check.ok()) return check.error();
  return out;
}

}  // namespace

wire::ShepherdPrepare to_wire(const base::PlacedTasks& placed, std::string spec) {
  wire::ShepherdPrepare out;
  fill_placed(placed, out);
  out.set_spec(std::move(spec));
  return out;
}

Result<base::PlacedTasks> from_wire(const wire::ShepherdPrepare& message) {
  return take_placed("ShepherdPrepare", message);
}

wire::ShepherdReport to_wire(const FoundAttempt& found) {
  wire::ShepherdReport out;
  fill_placed(found.placed, out);
  out.set_user(found.placed.user.value());
  out.set_phase(static_cast<std::uint32_t>(found.report.phase));
  to_wire(found.report.exits, *out.mutable_exits());
  for (pid_t pid : found.pids) out.add_pids(pid);
  return out;
}

Result<FoundAttempt> from_wire(const wire::ShepherdReport& message) {
  auto placed = take_placed("ShepherdReport", message);
  if (!placed) return placed.error();
  auto phase = phase_from_wire(message.phase());
  auto exits = from_wire(message.exits());
  auto pids = take_pids("ShepherdReport", message.pids());
  FieldCheck check("ShepherdReport");
  check.part("phase", phase);
  check.part("exits", exits);
  if (!check.ok()) return check.error();
  if (!pids) return pids.error();
  FoundAttempt found;
  found.placed = std::move(*placed);
  found.placed.user = base::UserId(message.user());
  found.report.attempt = found.placed.attempt;
  found.report.phase = *phase;
  found.report.exits = std::move(*exits);
  found.pids = std::move(*pids);
  return found;
}

Result<std::vector<pid_t>> from_wire(const wire::ShepherdStarted& message) {
  return take_pids("ShepherdStarted", message.pids());
}

}  // namespace score::proto
