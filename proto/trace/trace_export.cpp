// A job's bar begins when the network is switched and ends when the switcher begins to stop the
// job. So the bars of consecutive jobs never overlap. The records are those of the node, converted
// to cluster time by the node's own offset.
#include "proto/trace/trace_export.hpp"

#include "base/model/model.hpp"
#include "base/text/json_writer.hpp"
#include "proto/perfetto.pb.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

namespace score::proto {

using base::JsonWriter;

namespace {

constexpr std::uint32_t kMonotonicClock = 3;  // Perfetto's BUILTIN_CLOCK_MONOTONIC
constexpr std::uint32_t kStateCleared = 1;    // SEQ_INCREMENTAL_STATE_CLEARED: the first packet
constexpr std::uint64_t kTracksOfANode = std::uint64_t{1} << 40;
constexpr std::uint64_t kEmptyTrack = 1;  // no node has it
constexpr const char* kNoSwitches = "no switches recorded";

void add_phases(const wire::SwitchRecord& record, std::int64_t due, std::vector<TraceBar>& bars) {
  const auto add = [&](const char* name, std::int64_t from, std::int64_t to) {
    if (to > from) bars.push_back({name, 0, due + from, due + to, record.epoch(), "switch"});
  };
  add("wake", 0, record.woke_ns());
  add("stop", record.woke_ns(), record.stopped_ns());
  add("guard", record.stopped_ns(), record.guarded_ns());
  add("save", record.guarded_ns(), record.saved_ns());
  add("restore", record.saved_ns(), record.restored_ns());
  add("go", std::max(record.stopped_ns(), record.restored_ns()), record.done_ns());
}

std::uint64_t job_of(std::uint64_t attempt) {
  return base::job_of(base::AttemptId{attempt}).value();
}

class Bars {
 public:
  explicit Bars(std::int64_t begin, bool fills = false) : begin_(begin), fills_(fills) {}

  void enter(std::uint64_t attempt, std::int64_t at, std::uint64_t epoch) {
    open_.try_emplace(attempt, at, epoch);
    seen_.try_emplace(attempt, true);
  }

  void leave(std::uint64_t attempt, std::int64_t at, std::uint64_t epoch) {
    const auto found = open_.find(attempt);
    if (found != open_.end()) {
      close(attempt, found->second, at);
      open_.erase(found);
    } else if (!seen_.contains(attempt)) {  // it ran before the record starts
      close(attempt, {begin_, epoch}, at);
    }
    seen_.try_emplace(attempt, true);
  }

  // From `at` on exactly these attempts are open: none if the record notes that none runs.
  template <class Attempts>
  void set(const Attempts& attempts, std::int64_t at, std::uint64_t epoch) {
    for (auto one = open_.begin(); one != open_.end();) {
      const auto current = one++;
      if (std::find(attempts.begin(), attempts.end(), current->first) != attempts.end()) continue;
      close(current->first, current->second, at);
      open_.erase(current);
    }
    for (const auto attempt : attempts) enter(attempt, at, epoch);
  }

  std::vector<TraceBar> finish(std::int64_t at) {
    for (const auto& [attempt, since] : open_) close(attempt, since, at);
    return std::move(bars_);
  }

 private:
  using Since = std::pair<std::int64_t, std::uint64_t>;  // time, epoch

  void close(std::uint64_t attempt, Since since, std::int64_t at) {
    if (at <= since.first) return;
    const std::uint64_t job = job_of(attempt);
    const char* const category = fills_ ? "fill" : "job";
    auto name = fills_ ? fmt::format("job {} fills", job) : fmt::format("job {}", job);
    bars_.push_back({std::move(name), job, since.first, at, since.second, category});
  }

  std::int64_t begin_;
  bool fills_;
  std::map<std::uint64_t, Since> open_;
  std::map<std::uint64_t, bool> seen_;
  std::vector<TraceBar> bars_;
};

}  // namespace

namespace {

std::vector<TraceBar> switch_bars(const wire::NodeTrace& node) {
  if (node.switches().empty()) return {};
  const std::int64_t offset = node.clock_offset_ns();
  const auto& last = *node.switches().rbegin();
  Bars jobs(node.switches(0).due_ns() + offset);
  Bars fillers(node.switches(0).due_ns() + offset, true);
  std::vector<TraceBar> bars;
  for (const auto& record : node.switches()) {
    const std::int64_t due = record.due_ns() + offset;
    add_phases(record, due, bars);
    const std::int64_t at = due + record.stopped_ns();
    for (const auto attempt : record.left()) jobs.leave(attempt, at, record.epoch());
    const std::int64_t entered = due + std::max(record.stopped_ns(), record.restored_ns());
    for (const auto attempt : record.entered()) jobs.enter(attempt, entered, record.epoch());
    fillers.set(record.filling(), at, record.epoch());
    if (record.left().empty() && record.entered().empty()) jobs.set(record.left(), at, 0);
  }
  const auto of_jobs = jobs.finish(last.due_ns() + offset + last.done_ns());
  bars.insert(bars.end(), of_jobs.begin(), of_jobs.end());
  const auto of_fillers = fillers.finish(last.due_ns() + offset + last.done_ns());
  bars.insert(bars.end(), of_fillers.begin(), of_fillers.end());
  return bars;
}

void add_moves(const wire::NodeTrace& node, std::vector<TraceBar>& bars) {
  for (const wire::MemoryMove& move : node.moves()) {
    if (move.took_ns() <= 0) continue;
    const std::uint64_t job = job_of(move.attempt());
    const std::int64_t begin = move.began_ns() + node.clock_offset_ns();
    bars.push_back({fmt::format("job {} {} swap", job, move.out() ? "to" : "from"), job, begin,
                    begin + move.took_ns(), 0, "memory"});
  }
}

}  // namespace

std::vector<TraceBar> trace_bars(const wire::NodeTrace& node) {
  std::vector<TraceBar> bars = switch_bars(node);
  add_moves(node, bars);
  std::stable_sort(bars.begin(), bars.end(),
                   [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
  return bars;
}

// ---- Perfetto -----------------------------------------------------------------------------------

namespace {

bool has_switches(const wire::Trace& trace) {
  return std::any_of(trace.nodes().begin(), trace.nodes().end(),
                     [](const auto& node) { return node.switches_size() > 0; });
}

perfetto::TracePacket& add_packet(perfetto::Trace& out) {
  auto& packet = *out.add_packet();
  packet.set_trusted_packet_sequence_id(1);
  if (out.packet_size() == 1) packet.set_sequence_flags(kStateCleared);
  return packet;
}

void add_track(perfetto::Trace& out, std::uint64_t node, const TraceBar& bar) {
  auto& track = *add_packet(out).mutable_track_descriptor();
  track.set_uuid(node + 1 + bar.track);
  track.set_parent_uuid(node);
  track.set_name(bar.track == 0 ? "switches" : fmt::format("job {}", bar.track));
}

void add_edge(perfetto::Trace& out, std::uint64_t track, const TraceBar* begins, std::int64_t at) {
  auto& packet = add_packet(out);
  packet.set_timestamp(static_cast<std::uint64_t>(std::max<std::int64_t>(at, 0)));
  packet.set_timestamp_clock_id(kMonotonicClock);
  auto& event = *packet.mutable_track_event();
  event.set_track_uuid(track);
  event.set_type(begins != nullptr ? perfetto::TrackEvent::TYPE_SLICE_BEGIN
                                   : perfetto::TrackEvent::TYPE_SLICE_END);
  if (begins == nullptr) return;
  event.set_name(begins->name);
  event.add_categories(begins->category);
  auto& epoch = *event.add_debug_annotations();
  epoch.set_name("epoch");
  epoch.set_uint_value(begins->epoch);
}

void add_node(perfetto::Trace& out, std::uint64_t number, const wire::NodeTrace& node) {
  const std::uint64_t uuid = (number + 1) * kTracksOfANode;
  auto& descriptor = *add_packet(out).mutable_track_descriptor();
  descriptor.set_uuid(uuid);
  descriptor.set_name(node.node());
  descriptor.mutable_process()->set_pid(static_cast<std::int32_t>(number + 1));
  descriptor.mutable_process()->set_process_name(node.node());
  std::map<std::uint64_t, bool> known;
  for (const TraceBar& bar : trace_bars(node)) {
    if (known.try_emplace(bar.track, true).second) add_track(out, uuid, bar);
    add_edge(out, uuid + 1 + bar.track, &bar, bar.begin_ns);
    add_edge(out, uuid + 1 + bar.track, nullptr, bar.end_ns);
  }
}

// Without this mark an empty record would look like a file that was not written.
void add_emptiness(perfetto::Trace& out) {
  auto& track = *add_packet(out).mutable_track_descriptor();
  track.set_uuid(kEmptyTrack);
  track.set_name(kNoSwitches);
  auto& packet = add_packet(out);
  packet.set_timestamp(0);
  packet.set_timestamp_clock_id(kMonotonicClock);
  auto& event = *packet.mutable_track_event();
  event.set_track_uuid(kEmptyTrack);
  event.set_type(perfetto::TrackEvent::TYPE_INSTANT);
  event.set_name(kNoSwitches);
  event.add_categories("switch");
}

double to_us(std::int64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

void name_process(JsonWriter& json, int pid, const std::string& name) {
  json.begin_object().field("ph", "M").field("name", "process_name").field("pid", pid);
  json.key("args").begin_object().field("name", name).end_object().end_object();
}

}  // namespace

std::string trace_perfetto(const wire::Trace& trace) {
  perfetto::Trace out;
  for (int i = 0; i < trace.nodes_size(); ++i) {
    add_node(out, static_cast<std::uint64_t>(i), trace.nodes(i));
  }
  if (!has_switches(trace)) add_emptiness(out);
  return out.SerializeAsString();
}

// ---- chrome://tracing ---------------------------------------------------------------------------

std::string trace_chrome(const wire::Trace& trace) {
  JsonWriter json;
  json.begin_object().field("displayTimeUnit", "ms").key("traceEvents").begin_array();
  for (int i = 0; i < trace.nodes_size(); ++i) {
    name_process(json, i + 1, trace.nodes(i).node());
    for (const TraceBar& bar : trace_bars(trace.nodes(i))) {
      json.begin_object().field("ph", "X").field("name", bar.name);
      json.field("cat", bar.category).field("pid", i + 1);
      json.field("tid", bar.track).key("ts").fixed(to_us(bar.begin_ns), 3);
      json.key("dur").fixed(to_us(bar.end_ns - bar.begin_ns), 3);
      json.key("args").begin_object().field("epoch", bar.epoch).end_object().end_object();
    }
  }
  if (!has_switches(trace)) {
    json.begin_object().field("ph", "i").field("name", kNoSwitches).field("cat", "switch");
    json.field("pid", 1).field("tid", 0).field("ts", 0).field("s", "g").end_object();
  }
  json.end_array().end_object();
  return json.text() + "\n";
}

}  // namespace score::proto
