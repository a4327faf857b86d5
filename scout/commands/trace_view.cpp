// This file computes the skew between nodes. A boundary is one instant of cluster time, so records
// of different nodes belong together by it. Each node's timestamps are converted to cluster time by
// its own offset. Boundaries that differ by less than the clocks' error are the same one; they are
// found by the nodes' common (epoch, due) rounded to 0.5 ms (the smallest quantum is 1 ms).
#include "scout/commands/trace_view.hpp"

#include "base/model/switch_overhead.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/plain.hpp"
#include "proto/trace/trace_json.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace score::scout {

namespace {

double percentile_us(std::vector<std::int64_t>& values, double part) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::size_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return static_cast<double>(values[at]) / 1e3;
}

std::string figures(std::string_view label, std::vector<std::int64_t> values) {
  if (values.empty()) return fmt::format("{:<22} none\n", label);
  return fmt::format("{:<22} p50 {:>8.1f} us  p99 {:>8.1f} us  max {:>8.1f} us  ({})\n", label,
                     percentile_us(values, 0.5), percentile_us(values, 0.99),
                     percentile_us(values, 1.0), values.size());
}

Duration ns(std::int64_t value) {
  return Duration(value);
}

SwitchMoments moments_of(const wire::SwitchRecord& record) {
  return {ns(record.woke_ns()), ns(record.stopped_ns()), ns(record.restored_ns()),
          ns(record.done_ns())};
}

// A record without jobs only notes that no job is scheduled any more.
bool is_switch(const wire::SwitchRecord& record) {
  return record.left_size() + record.entered_size() > 0;
}

// Holds the lengths of the phases, with the names that they have in the stream. Those of the
// network are of switches in which a channel changed its job.
struct Phases {
  std::vector<std::int64_t> wake, stop, guard, save, restore, go, total;

  void add(const wire::SwitchRecord& record);
};

void Phases::add(const wire::SwitchRecord& record) {
  const SwitchOverhead parts = overhead_of(moments_of(record));
  wake.push_back(parts.wake.count());
  stop.push_back(parts.stop.count());
  if (record.restored_ns() > record.stopped_ns()) {
    guard.push_back(record.guarded_ns() - record.stopped_ns());
    save.push_back(record.saved_ns() - record.guarded_ns());
    restore.push_back(record.restored_ns() - record.saved_ns());
  }
  go.push_back(parts.go.count());
  total.push_back(parts.total().count());
}

std::string frames_resent(const wire::Trace& trace) {
  std::uint64_t sent = 0, resent = 0;
  for (const auto& node : trace.nodes()) {
    sent += node.channels().frames_sent();
    resent += node.channels().frames_resent();
  }
  return sent > 0 ? fmt::format("{:<22} {} of {} sent\n", "frames resent", resent, sent) : "";
}

struct StopSpan {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::size_t nodes = 0;
};

// Returns the time between the first node and the last, for each boundary at which at least two
// nodes stopped something.
std::vector<std::int64_t> stop_skews(const wire::Trace& trace) {
  constexpr std::int64_t kHalfQuantum = 500'000;
  std::map<std::pair<std::uint64_t, std::int64_t>, StopSpan> boundaries;
  for (const auto& node : trace.nodes()) {
    for (const auto& record : node.switches()) {
      if (record.left_size() == 0) continue;
      const std::int64_t due = record.due_ns() + node.clock_offset_ns();
      const std::int64_t stopped = due + record.stopped_ns();
      auto& span = boundaries[{record.epoch(), (due + kHalfQuantum / 2) / kHalfQuantum}];
      span.first = span.nodes == 0 ? stopped : std::min(span.first, stopped);
      span.last = span.nodes == 0 ? stopped : std::max(span.last, stopped);
      ++span.nodes;
    }
  }
  std::vector<std::int64_t> skews;
  for (const auto& [boundary, span] : boundaries) {
    if (span.nodes > 1) skews.push_back(span.last - span.first);
  }
  return skews;
}

// Adds up the overhead between a node's first record and its last, and the time in which a job was
// scheduled there. A record tells whether one is from its stop on.
void add_overhead(const wire::NodeTrace& node, SwitchOverhead& overhead, Duration& busy) {
  for (int i = 1; i < node.switches_size(); ++i) {
    const auto& before = node.switches(i - 1);
    const auto& record = node.switches(i);
    if (record.entered_size() > 0) overhead += overhead_of(moments_of(record));
    if (!before.busy()) continue;
    busy += ns(record.due_ns() + record.stopped_ns()) - ns(before.due_ns() + before.stopped_ns());
  }
}

std::string overhead_lines(const wire::Trace& trace) {
  SwitchOverhead overhead;
  Duration busy{0};
  for (const auto& node : trace.nodes()) add_overhead(node, overhead, busy);
  const auto share = share_of(overhead.total(), busy);
  if (!share) return "";
  std::string page =
      fmt::format("{:<22} {:.3f} % of the time with a job\n", "overhead", 100 * *share);
  page += fmt::format("{:<22}", "  its parts, %");
  for (const auto& [name, part] : kOverheadParts) {
    page += fmt::format(" {} {:.3f}", name, 100 * share_of(overhead.*part, busy).value_or(0));
  }
  return page + "\n";
}

std::string late_line(const wire::Trace& trace, std::size_t switches) {
  std::size_t late = 0;
  for (const auto& node : trace.nodes()) {
    for (const auto& record : node.switches()) {
      if (is_switch(record) && is_late(ns(record.woke_ns()), ns(record.slice_ns()))) ++late;
    }
  }
  return fmt::format("{:<22} {} of {}: by more than {} % of the slice\n", "late", late, switches,
                     kLatePercent);
}

}  // namespace

std::string trace_json(const wire::Trace& trace) {
  return proto::trace_json(trace);
}

std::string trace_page(const wire::Trace& trace) {
  Phases phases;
  for (const auto& node : trace.nodes()) {
    for (const auto& record : node.switches()) {
      if (is_switch(record)) phases.add(record);
    }
  }
  const std::size_t count = phases.total.size();
  std::string page =
      fmt::format("{}, {}\n", counted(static_cast<std::uint64_t>(trace.nodes_size()), "node"),
                  count == 1 ? "1 switch" : fmt::format("{} switches", count));
  page += figures("wake", std::move(phases.wake));
  page += figures("stop", std::move(phases.stop));
  if (!phases.guard.empty()) {
    page += figures("guard", std::move(phases.guard));
    page += figures("save", std::move(phases.save));
    page += figures("restore", std::move(phases.restore));
  }
  page += figures("go", std::move(phases.go));
  page += figures("total", std::move(phases.total));
  page += figures("skew", stop_skews(trace));
  page += frames_resent(trace);
  if (count > 0) page += late_line(trace, count);
  page += overhead_lines(trace);
  if (trace.silent_nodes_size() > 0) {
    const std::vector<std::string> names(trace.silent_nodes().begin(), trace.silent_nodes().end());
    page += fmt::format("no trace from {}: no answer\n", compress_hostlist(names));
  }
  return page;
}

}  // namespace score::scout
