// This file is tested by convert_node_test.cpp.

#include "base/limits.hpp"
#include "proto/convert/convert.hpp"
#include "proto/frames/field_check.hpp"
#include "proto/frames/hello.hpp"

#include <algorithm>
#include <functional>

namespace score::proto {

namespace limits = base::limits;
using base::AttemptId;
using base::Result;

namespace {

// A node cannot have this many; each is an entry of a few bytes within the frame's limit.
constexpr std::size_t kMaxAttempts = limits::kMaxActiveJobs;

std::vector<AttemptId> take_attempts(const google::protobuf::RepeatedField<std::uint64_t>& ids) {
  std::vector<AttemptId> out;
  out.reserve(static_cast<std::size_t>(ids.size()));
  for (std::uint64_t id : ids) out.emplace_back(id);
  return out;
}

void take_segments(FieldCheck& check, const wire::SetTimetable& message, base::Timetable& out) {
  std::int64_t end = 0;
  for (const auto& segment : message.segments()) {
    if (!check.ok()) return;
    check.require("segments", segment.offset_ns() == end, "overlap or leave a gap");
    check.require("segments", segment.length_ns() > 0, "have one without length");
    check.require("segments", segment.length_ns() <= message.cycle_ns() - end,
                  "are longer than the cycle");
    check.at_most("segments.jobs", static_cast<std::size_t>(segment.jobs_size()),
                  limits::kMaxJobsPerNode);
    if (!check.ok()) return;
    end += segment.length_ns();
    auto& made = out.segments.emplace_back();
    made.offset = base::Duration(segment.offset_ns());
    made.length = base::Duration(segment.length_ns());
    made.jobs = take_attempts(segment.jobs());
    bool ascends = std::adjacent_find(made.jobs.begin(), made.jobs.end(), std::greater_equal<>()) ==
                   made.jobs.end();
    check.require("segments.jobs", ascends, "are not in ascending order");
  }
  check.require("segments", end == message.cycle_ns(), "do not fill the cycle");
}

}  // namespace

wire::NodeHello to_wire(const base::NodeHello& hello) {
  wire::NodeHello out;
  out.set_lowest_version(spoken_versions().lowest);
  out.set_highest_version(spoken_versions().highest);
  out.set_name(hello.info.name);
  out.set_cores(hello.info.cores);
  out.set_memory_bytes(hello.info.memory.value());
  for (const auto& resource : hello.info.generic) *out.add_generic() = to_wire(resource);
  out.set_scratch_bytes(hello.info.scratch.value());
  for (const auto& feature : hello.info.features) out.add_features(feature);
  out.set_epoch(hello.epoch.value());
  for (const auto& report : hello.attempts) {
    auto* entry = out.add_attempts();
    entry->set_attempt(report.attempt.value());
    entry->set_phase(static_cast<std::uint32_t>(report.phase));
    to_wire(report.exits, *entry->mutable_exits());
    entry->set_reason(cut_reason(report.reason));
    entry->set_filled_ns(report.filled.count());
    entry->set_oom_kills(report.oom_kills);
  }
  return out;
}

Result<base::NodeHello> from_wire(const wire::NodeHello& message) {
  FieldCheck check("NodeHello");
  check.host_name("name", message.name());
  check.within("cores", message.cores(), 1, limits::kMaxCoresPerNode);
  check.at_most("attempts", static_cast<std::size_t>(message.attempts_size()), kMaxAttempts);
  check_generic(check, message.generic());
  check.at_most("features", static_cast<std::size_t>(message.features_size()),
                limits::kMaxNodeFeatures);
  for (const auto& feature : message.features()) check.host_name("features", feature);
  if (!check.ok()) return check.error();
  base::NodeHello out;
  out.info = {message.name(), message.cores(), base::Bytes(message.memory_bytes())};
  for (const auto& resource : message.generic()) out.info.generic.push_back(from_wire(resource));
  out.info.scratch = base::Bytes(message.scratch_bytes());
  out.info.features.assign(message.features().begin(), message.features().end());
  out.epoch = base::Epoch(message.epoch());
  out.attempts.reserve(static_cast<std::size_t>(message.attempts_size()));
  for (const auto& entry : message.attempts()) {
    auto phase = phase_from_wire(entry.phase());
    auto exits = from_wire(entry.exits());
    check.not_zero("attempts.attempt", entry.attempt());
    check.part("attempts", phase);
    check.part("attempts", exits);
    check.require("attempts.filled_ns", entry.filled_ns() >= 0, "is negative");
    if (!check.ok()) return check.error();
    auto& report = out.attempts.emplace_back();
    report.attempt = AttemptId(entry.attempt());
    report.phase = *phase;
    report.exits = std::move(*exits);
    report.reason = cut_reason(entry.reason());
    report.filled = base::Duration(entry.filled_ns());
    report.oom_kills = entry.oom_kills();
  }
  return out;
}

wire::SetTimetable to_wire(const base::Timetable& timetable) {
  wire::SetTimetable out;
  out.set_epoch(timetable.epoch.value());
  out.set_start_ns(timetable.start.time_since_epoch().count());
  out.set_cycle_ns(timetable.cycle.count());
  for (const auto& segment : timetable.segments) {
    auto* entry = out.add_segments();
    entry->set_offset_ns(segment.offset.count());
    entry->set_length_ns(segment.length.count());
    for (AttemptId job : segment.jobs) entry->add_jobs(job.value());
  }
  for (AttemptId job : timetable.managed) out.add_managed(job.value());
  out.set_slice_ns(timetable.slice.count());
  out.set_first_slice_ns(timetable.first_slice.count());
  for (AttemptId job : timetable.background) out.add_background(job.value());
  for (AttemptId job : timetable.fill) out.add_fill(job.value());
  return out;
}

Result<base::Timetable> from_wire(const wire::SetTimetable& message) {
  FieldCheck check("SetTimetable");
  check.require("cycle_ns", message.cycle_ns() >= 0, "is negative");
  check.at_most("segments", static_cast<std::size_t>(message.segments_size()),
                limits::kMaxSegmentsPerCycle);
  check.at_most("managed", static_cast<std::size_t>(message.managed_size()), kMaxAttempts);
  check.require("slice_ns",
                message.slice_ns() == 0 || (message.slice_ns() >= limits::kMinQuantum.count() &&
                                            message.slice_ns() <= limits::kMaxQuantum.count()),
                "is not the length of a slice");
  check.require("first_slice_ns",
                message.first_slice_ns() >= (message.slice_ns() == 0 ? 0 : 1) &&
                    message.first_slice_ns() <= message.slice_ns(),
                "lies outside the slice");
  check.at_most("background", static_cast<std::size_t>(message.background_size()), kMaxAttempts);
  check.at_most("fill", static_cast<std::size_t>(message.fill_size()), kMaxAttempts);
  if (!check.ok()) return check.error();
  base::Timetable out;
  out.epoch = base::Epoch(message.epoch());
  out.start = base::TimePoint(base::Duration(message.start_ns()));
  out.cycle = base::Duration(message.cycle_ns());
  out.slice = base::Duration(message.slice_ns());
  out.first_slice = base::Duration(message.first_slice_ns());
  take_segments(check, message, out);
  if (!check.ok()) return check.error();
  out.managed = take_attempts(message.managed());
  out.background = take_attempts(message.background());
  out.fill = take_attempts(message.fill());
  return out;
}

}  // namespace score::proto
