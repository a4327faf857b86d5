// Writes a record in both formats and reads it back.
#include "proto/trace/trace_export.hpp"

#include "proto/perfetto.pb.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace score::proto {
namespace {

constexpr std::uint64_t kFirst = 1 * 256 + 1;
constexpr std::uint64_t kSecond = 2 * 256 + 1;

void add_switch(wire::NodeTrace& node, std::int64_t due, std::uint64_t left,
                std::uint64_t entered) {
  auto& record = *node.add_switches();
  record.set_due_ns(due);
  record.set_woke_ns(20'000);
  record.set_stopped_ns(35'000);
  record.set_done_ns(60'000);
  record.set_epoch(9);
  if (left != 0) record.add_left(left);
  if (entered != 0) record.add_entered(entered);
}

// Makes a trace in which jobs 1 and 2 take turns of 1 ms on two nodes whose clocks differ by a
// second.
wire::Trace alternation() {
  wire::Trace trace;
  for (std::int64_t n = 0; n < 2; ++n) {
    auto& node = *trace.add_nodes();
    node.set_node("node0" + std::to_string(n));
    node.set_clock_offset_ns(n * 1'000'000'000);
    for (std::int64_t i = 0; i < 10; ++i) {
      const std::int64_t due = 5'000'000'000 - n * 1'000'000'000 + i * 1'000'000;
      add_switch(node, due, i % 2 == 0 ? kSecond : kFirst, i % 2 == 0 ? kFirst : kSecond);
    }
  }
  return trace;
}

TEST(TraceExport, BarsOfJobsTouchWithoutOverlap) {
  std::int64_t end = 0;
  int jobs = 0;
  for (const TraceBar& bar : trace_bars(alternation().nodes(0))) {
    if (bar.track == 0) continue;
    EXPECT_GE(bar.begin_ns, end);
    end = bar.end_ns;
    ++jobs;
  }
  EXPECT_EQ(jobs, 11) << "the one that ran before, ten that entered";
}

TEST(TraceExport, NodesAreDrawnInClusterTime) {
  const auto trace = alternation();
  const auto first = trace_bars(trace.nodes(0));
  const auto second = trace_bars(trace.nodes(1));
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].begin_ns, second[i].begin_ns);
    EXPECT_EQ(first[i].name, second[i].name);
  }
}

TEST(TraceExport, MovedMemoryIsABarOfItsJob) {
  wire::Trace trace = alternation();
  wire::NodeTrace& node = *trace.mutable_nodes(1);
  wire::MemoryMove& move = *node.add_moves();
  move.set_attempt(3 * 256 + 1);
  move.set_out(true);
  move.set_began_ns(4'000'000'000);
  move.set_took_ns(2'000'000);
  node.add_moves()->set_took_ns(-1);
  std::vector<TraceBar> moved;
  for (const TraceBar& bar : trace_bars(node)) {
    if (std::string_view(bar.category) == "memory") moved.push_back(bar);
  }
  ASSERT_EQ(moved.size(), 1U) << "a hostile length makes no bar";
  EXPECT_EQ(moved[0].name, "job 3 to swap");
  EXPECT_EQ(moved[0].track, 3U);
  EXPECT_EQ(moved[0].begin_ns, 5'000'000'000) << "cluster time";
  EXPECT_EQ(moved[0].end_ns, 5'002'000'000);
  EXPECT_NE(trace_chrome(trace).find("job 3 to swap"), std::string::npos);
}

TEST(TraceExport, FillingJobHasASeparateBar) {
  wire::NodeTrace node;
  const std::int64_t apart = 1'000'000;
  for (std::int64_t i = 0; i < 4; ++i) {
    add_switch(node, (i + 1) * apart, i % 2 == 0 ? kSecond : kFirst, i % 2 == 0 ? kFirst : kSecond);
    if (i < 2) node.mutable_switches(static_cast<int>(i))->add_filling(i == 0 ? kSecond : kFirst);
  }
  std::vector<TraceBar> fillers;
  for (const TraceBar& bar : trace_bars(node)) {
    if (std::string_view(bar.category) == "fill") fillers.push_back(bar);
  }
  ASSERT_EQ(fillers.size(), 2U);
  EXPECT_EQ(fillers[0].name, fmt::format("job {} fills", fillers[0].track));
  EXPECT_NE(fillers[0].track, fillers[1].track);
  for (const TraceBar& bar : fillers) EXPECT_EQ(bar.end_ns - bar.begin_ns, apart);
}

TEST(TraceExport, ShowsThePhasesOfASwitch) {
  std::map<std::string, std::int64_t> lengths;
  for (const TraceBar& bar : trace_bars(alternation().nodes(0))) {
    if (bar.track == 0) lengths[bar.name] = bar.end_ns - bar.begin_ns;
  }
  EXPECT_EQ(lengths, (std::map<std::string, std::int64_t>{
                         {"wake", 20'000}, {"stop", 15'000}, {"go", 25'000}}));
}

TEST(TraceExport, PerfettoTraceIsReadBack) {
  perfetto::Trace read;
  ASSERT_TRUE(read.ParseFromString(trace_perfetto(alternation())));
  std::map<std::uint64_t, std::string> tracks;
  std::map<std::uint64_t, int> open;
  int begins = 0;
  for (const auto& packet : read.packet()) {
    EXPECT_EQ(packet.trusted_packet_sequence_id(), 1U);
    if (packet.has_track_descriptor()) {
      const auto& track = packet.track_descriptor();
      EXPECT_TRUE(tracks.emplace(track.uuid(), track.name()).second);
      EXPECT_TRUE(!track.has_parent_uuid() || tracks.contains(track.parent_uuid()));
    } else {
      const auto& event = packet.track_event();
      ASSERT_TRUE(tracks.contains(event.track_uuid()));
      const bool is_begin = event.type() == perfetto::TrackEvent::TYPE_SLICE_BEGIN;
      begins += is_begin ? 1 : 0;
      open[event.track_uuid()] += is_begin ? 1 : -1;
      EXPECT_GE(open[event.track_uuid()], 0) << "an end without a begin";
    }
  }
  for (const auto& [track, count] : open) EXPECT_EQ(count, 0) << tracks[track];
  EXPECT_EQ(begins, 2 * (11 + 30));
}

TEST(TraceExport, ChromeHasACompleteEventPerBar) {
  const std::string json = trace_chrome(alternation());
  std::size_t events = 0;
  for (std::size_t at = json.find("\"X\""); at != json.npos; at = json.find("\"X\"", at + 1)) {
    ++events;
  }
  EXPECT_EQ(events, 2U * (11 + 30));
}

TEST(TraceExport, ChromeTimesAreExactAfterDays) {
  wire::Trace trace;
  auto& node = *trace.add_nodes();
  constexpr std::int64_t kDays = 1'000'000'000'000'000;
  add_switch(node, kDays, 0, 256);
  add_switch(node, kDays + 1'000'007, 256, 512);
  const std::string json = trace_chrome(trace);
  EXPECT_NE(json.find("\"ts\": 1000000001000.007"), json.npos) << json;
}

TEST(TraceExport, NodeWithoutSwitchesHasNoBars) {
  EXPECT_TRUE(trace_bars(wire::NodeTrace()).empty());
}

TEST(TraceExport, RecordWithoutSwitchesHasAMark) {
  wire::Trace one;
  one.add_nodes()->set_node("node00");
  for (const wire::Trace& empty : {wire::Trace(), one}) {
    perfetto::Trace read;
    ASSERT_TRUE(read.ParseFromString(trace_perfetto(empty)));
    const auto& event = read.packet(read.packet_size() - 1).track_event();
    EXPECT_EQ(event.type(), perfetto::TrackEvent::TYPE_INSTANT);
    EXPECT_EQ(event.name(), "no switches recorded");
    EXPECT_NE(trace_chrome(empty).find("no switches recorded"), std::string::npos);
  }
  EXPECT_EQ(trace_chrome(alternation()).find("no switches"), std::string::npos);
}

TEST(TraceExport, SurvivesAnInconsistentRecord) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    wire::Trace trace;
    auto& node = *trace.add_nodes();
    for (int i = 0; i < 20; ++i) {
      add_switch(node, static_cast<std::int64_t>(random() % 1'000'000), random() % 4 * 256,
                 random() % 4 * 256);
    }
    for (const TraceBar& bar : trace_bars(node)) EXPECT_LT(bar.begin_ns, bar.end_ns);
    EXPECT_FALSE(trace_perfetto(trace).empty());
    EXPECT_FALSE(trace_chrome(trace).empty());
  }
}

}  // namespace
}  // namespace score::proto
