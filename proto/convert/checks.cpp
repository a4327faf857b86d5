// The checks are tested by convert_job_test.cpp and convert_node_test.cpp.

#include "proto/convert/checks.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

namespace score::proto {

namespace {

void check_kinds(FieldCheck& check, const std::vector<base::GenericResource>& generic) {
  std::set<std::string_view> names;
  for (const auto& resource : generic) {
    check.require("generic.name", names.insert(resource.name).second, "is there twice");
  }
}

}  // namespace

void check_value(FieldCheck& check, const base::ResourceRequest& request) {
  const bool is_step = request.inside != base::JobId();
  check.require("inside", !is_step || (!request.allocation && !request.overlay),
                "cannot be a job with cores of its own");
  check.require("allocation", !request.allocation || !request.overlay, "takes no cores");
  for (const std::string& feature : request.features) {
    for (const auto name : base::split(feature, '|')) check.host_name("features", name);
  }
  check_kinds(check, request.generic);
}

void check_value(FieldCheck& check, const base::NodeInfo& node) {
  check_kinds(check, node.generic);
}

void check_value(FieldCheck& check, const base::Timetable& timetable) {
  const auto [slice, first_slice] = std::pair(timetable.slice, timetable.first_slice);
  const bool has_slices = slice != base::Duration();
  check.require("slice_ns",
                !has_slices || (slice >= limits::kMinQuantum && slice <= limits::kMaxQuantum),
                "is not the length of a slice");
  check.require("first_slice_ns",
                first_slice >= base::Duration(has_slices ? 1 : 0) && first_slice <= slice,
                "lies outside the slice");
  base::Duration end{0};
  for (const auto& segment : timetable.segments) {
    check.require("segments", segment.offset == end, "overlap or leave a gap");
    check.require("segments", segment.length > base::Duration(), "have one without length");
    check.require("segments", segment.length <= timetable.cycle - end, "are longer than the cycle");
    const bool ascends =
        std::ranges::adjacent_find(segment.jobs, std::greater_equal<>()) == segment.jobs.end();
    check.require("segments.jobs", ascends, "are not in ascending order");
    if (!check.ok()) return;
    end += segment.length;
  }
  check.require("segments", end == timetable.cycle, "do not fill the cycle");
}

void check_value(FieldCheck& check, const base::PlacedTasks& placed) {
  const std::size_t nodes = placed.tasks_on_node.size();
  check.require("node_index", placed.node_index < nodes, "is not below the number of nodes");
  const auto total =
      std::accumulate(placed.tasks_on_node.begin(), placed.tasks_on_node.end(), std::uint64_t{0});
  check.require("tasks_on_node", total <= limits::kMaxTasksPerJob, "has too many tasks in all");
  check.require("nodes", placed.nodes.empty() || placed.nodes.size() == nodes,
                "are not as many as have tasks");
}

}  // namespace score::proto
