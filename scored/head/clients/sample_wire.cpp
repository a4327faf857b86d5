#include "scored/head/clients/sample_wire.hpp"

#include "base/limits.hpp"

#include <algorithm>

namespace score::head {

namespace {

// These limits are per sample; a sample with more stays well below a frame's limit in bytes.
constexpr int kMaxGangs = limits::kMaxJobsPerNode;
constexpr int kMaxTasks = limits::kMaxTasksPerNode;
constexpr int kMaxPeers = limits::kMaxNodes;
constexpr int kMaxSwitches = 4'096;

bool is_time(std::int64_t ns) {
  return ns >= 0 && ns < Duration(std::chrono::hours(24 * 365 * 100)).count();
}

bool are_times(std::initializer_list<std::int64_t> all) {
  return std::all_of(all.begin(), all.end(), is_time);
}

// Fills the existing elements of `out`, so their memory is used again.
template <class Messages, class Value>
Status each_from_wire(const Messages& messages, std::vector<Value>& out);

Status from_wire(const wire::TaskSample& message, monitor::TaskSample& task) {
  if (message.state() >= monitor::kTaskStates ||
      !are_times({message.user_ns(), message.system_ns(), message.waited_ns()})) {
    return fail(Errc::Malformed, "task {}", message.rank());
  }
  task.rank = Rank(message.rank());
  task.pid = static_cast<std::int32_t>(std::clamp<std::int64_t>(message.pid(), 0, 1 << 30));
  task.state = static_cast<monitor::TaskState>(message.state());
  task.user = Duration(message.user_ns());
  task.system = Duration(message.system_ns());
  task.waited = Duration(message.waited_ns());
  task.switches = message.switches();
  task.memory = Bytes(message.memory_bytes());
  task.processes = message.processes();
  task.pm.reset();
  if (message.has_pm()) {
    task.pm = monitor::PmReading{message.waits_in_pm(),
                                 {message.sent_messages(), message.received_messages(),
                                  message.sent_bytes(), message.received_bytes()}};
  }
  return {};
}

Status from_wire(const wire::GangSample& message, monitor::GangSample& gang) {
  if (message.tasks_size() > kMaxTasks || message.frames_to_size() > kMaxPeers ||
      !is_time(message.scheduled_ns()) || !is_time(message.filled_ns())) {
    return fail(Errc::Malformed, "attempt {}", message.attempt());
  }
  gang.attempt = AttemptId(message.attempt());
  gang.scheduled = Duration(message.scheduled_ns());
  gang.filled = Duration(message.filled_ns());
  gang.runs = message.runs();
  gang.fills = message.fills();
  gang.frames_to.assign(message.frames_to().begin(), message.frames_to().end());
  return each_from_wire(message.tasks(), gang.tasks);
}

Status from_wire(const wire::SwitchRecord& message, monitor::SwitchSample& sample) {
  const bool is_sound =
      are_times({message.due_ns(), message.woke_ns(), message.stopped_ns(), message.done_ns()}) &&
      message.woke_ns() <= message.stopped_ns() && message.stopped_ns() <= message.done_ns();
  const int most = std::max({message.left_size(), message.entered_size(), message.filling_size()});
  if (!is_sound || most > 64) return fail(Errc::Malformed, "switch");
  sample.due = TimePoint(Duration(message.due_ns()));
  sample.woke = Duration(message.woke_ns());
  sample.stopped = Duration(message.stopped_ns());
  sample.done = Duration(message.done_ns());
  const bool has_network = message.restored_ns() != 0;
  sample.guarded = has_network ? Duration(message.guarded_ns()) : sample.stopped;
  sample.saved = has_network ? Duration(message.saved_ns()) : sample.stopped;
  sample.restored = has_network ? Duration(message.restored_ns()) : sample.stopped;
  if (sample.guarded < sample.stopped || sample.saved < sample.guarded ||
      sample.restored < sample.saved || sample.done < sample.restored) {
    return fail(Errc::Malformed, "switch");
  }
  sample.left.clear();
  sample.entered.clear();
  sample.filling.clear();
  for (const auto id : message.left()) sample.left.emplace_back(id);
  for (const auto id : message.entered()) sample.entered.emplace_back(id);
  for (const auto id : message.filling()) sample.filling.emplace_back(id);
  return {};
}

template <class Messages, class Value>
Status each_from_wire(const Messages& messages, std::vector<Value>& out) {
  out.resize(static_cast<std::size_t>(messages.size()));
  for (int i = 0; i < messages.size(); ++i) {
    if (auto read = from_wire(messages[i], out[static_cast<std::size_t>(i)]); !read) return read;
  }
  return {};
}

Result<monitor::NodeTotals> from_wire(const wire::SwitchTotals& message) {
  const bool is_sound = are_times({message.lost_ns(), message.busy_ns(), message.user_ns(),
                                   message.system_ns(), message.filled_ns()});
  if (!is_sound) return fail(Errc::Malformed, "totals");
  monitor::NodeTotals totals;
  totals.switches = message.switches();
  totals.late = message.late();
  totals.lost = Duration(message.lost_ns());
  totals.busy = Duration(message.busy_ns());
  totals.user = Duration(message.user_ns());
  totals.system = Duration(message.system_ns());
  totals.filled = Duration(message.filled_ns());
  totals.traffic.sent_bytes = message.sent_bytes();
  totals.traffic.received_bytes = message.received_bytes();
  totals.is_whole = message.phases_size() > 0;
  const int phases = std::min<int>(message.phases_size(), monitor::kSwitchPhases);
  for (int i = 0; i < phases; ++i) {
    auto& phase = totals.phases[static_cast<std::size_t>(i)];
    const auto& from = message.phases(i);
    const auto buckets =
        std::min<std::size_t>(phase.counts.size(), static_cast<std::size_t>(from.buckets_size()));
    for (std::size_t b = 0; b < buckets; ++b) {
      phase.counts[b] = from.buckets(static_cast<int>(b));
    }
    phase.sum = Duration(std::max<std::int64_t>(from.sum_ns(), 0));
  }
  return totals;
}

}  // namespace

Status from_wire(const wire::NodeSample& message, monitor::NodeSample& sample) {
  if (message.gangs_size() > kMaxGangs || message.scratch_size() > kMaxGangs ||
      message.switches_size() > kMaxSwitches || !is_time(message.taken_ns())) {
    return fail(Errc::Malformed, "sample");
  }
  sample.taken = TimePoint(Duration(message.taken_ns()));
  if (auto read = each_from_wire(message.gangs(), sample.gangs); !read) return read;
  if (auto read = each_from_wire(message.switches(), sample.switches); !read) return read;
  sample.switches_lost = message.switches_lost();
  sample.totals.reset();
  if (message.has_totals()) {
    auto totals = from_wire(message.totals());
    if (!totals) return totals.error();
    sample.totals = *totals;
  }
  sample.totals_only = message.totals_only();
  return {};
}

std::vector<monitor::VolumeSample> volumes_of(const wire::NodeSample& message) {
  std::vector<monitor::VolumeSample> volumes;
  for (const auto& sent : message.scratch()) {
    monitor::VolumeSample& volume = volumes.emplace_back();
    volume.attempt = AttemptId(sent.attempt());
    volume.capacity = Bytes(sent.capacity_bytes());
    volume.used = Bytes(sent.used_bytes());
    volume.read = sent.read_bytes();
    volume.written = sent.written_bytes();
    volume.requests = sent.requests();
    volume.queue = sent.queue();
    volume.restarts = sent.restarts();
    volume.fallbacks = sent.fallbacks();
    volume.is_down = sent.is_down();
  }
  return volumes;
}

}  // namespace score::head
