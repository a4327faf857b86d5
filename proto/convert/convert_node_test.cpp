// Tests the generated conversions of the head's link, and checks.cpp.

#include "base/limits.hpp"
#include "proto/convert/convert.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace score::proto {
namespace {

namespace limits = base::limits;
const base::AttemptId kAttempt = base::make_attempt(base::JobId(7), 1);
const base::AttemptId kOther = base::make_attempt(base::JobId(8), 3);

base::PlacedTasks some_placed() {
  base::PlacedTasks placed;
  placed.attempt = kAttempt;
  placed.user = base::UserId(1000);
  placed.node_index = 1;
  placed.tasks_on_node = {2, 2, 1};
  placed.cores = {0, 3};
  placed.memory = base::Bytes(1U << 20U);
  placed.distribution = base::Distribution::Cyclic;
  placed.restarts = 2;
  placed.nodes = {4, 0, 7};
  placed.generic = {{"gpu", {0, 3}}};
  placed.scratch = base::Bytes(1ULL << 34U);
  return placed;
}

base::Timetable some_timetable() {
  base::Segment first;
  first.length = 100ms;
  first.jobs = {kAttempt, kOther};
  base::Segment second;
  second.offset = 100ms;
  second.length = 50ms;
  base::Timetable timetable;
  timetable.epoch = base::Epoch(9);
  timetable.start = base::TimePoint(5s);
  timetable.cycle = 150ms;
  timetable.segments = {first, second};
  timetable.managed = {kAttempt, kOther};
  timetable.slice = 50ms;
  timetable.first_slice = 30ms;
  timetable.background = {base::make_attempt(base::JobId(9), 1)};
  timetable.fill = {kOther};
  return timetable;
}

base::NodeHello some_hello() {
  base::AttemptReport report;
  report.attempt = kAttempt;
  report.phase = base::AttemptPhase::Exited;
  report.exits = {{base::Rank(0), 3, 0}};
  report.reason = "memory limit";
  report.filled = 3ms;
  report.oom_kills = 2;
  base::NodeHello hello;
  hello.info = {"node01",
                8,
                base::Bytes(1U << 30U),
                {{"gpu", 2, base::Bytes(1ULL << 35U), true}},
                base::Bytes(1ULL << 40U),
                {"ib", "big"}};
  hello.attempts = {report};
  hello.epoch = base::Epoch(4);
  return hello;
}

TEST(HeadToNode, RecognisesItsFrames) {
  EXPECT_TRUE(is_head_to_node(FrameType::StartTasks));
  EXPECT_FALSE(is_head_to_node(FrameType::Heartbeat));
  EXPECT_TRUE(decode_node_to_head(FrameType::Heartbeat, "").error().is(WireErrc::UnknownType));
  EXPECT_TRUE(decode_head_to_node(FrameType{4711}, "").error().is(WireErrc::UnknownType));
}

TEST(NodeToHead, LongReasonsAreCut) {
  auto message = to_wire(base::Exited{kAttempt, {}, std::string(100'000, 'r')});
  EXPECT_EQ(message.reason().size(), limits::kMaxErrorTextBytes);
  message.set_reason(std::string(100'000, 'r'));
  EXPECT_EQ(from_wire(message)->reason.size(), limits::kMaxErrorTextBytes);
}

TEST(NodeToHead, LargestFieldsFitIntoTheFrame) {
  const auto attempt = base::AttemptId(UINT64_MAX);
  const base::TaskExit exit{base::Rank(limits::kMaxTasksPerJob - 1), 255, 64};
  const std::vector<base::TaskExit> exits(limits::kMaxTasksPerNode, exit);
  const std::string reason(limits::kMaxErrorTextBytes, '\xff');
  const base::NodeToHead messages[] = {
      base::Prepared{attempt},
      base::Refused{attempt, 255, reason},
      base::Started{attempt},
      base::TaskEnded{attempt, exit},
      base::Exited{attempt, exits, reason},
      base::AbortRequested{attempt, base::Rank(UINT32_MAX), INT32_MIN, reason},
      base::TimetableApplied{base::Epoch(UINT64_MAX), base::Duration(INT64_MIN)},
      base::MemoryReport{true, base::Bytes::max()}};
  for (const auto& message : messages) {
    const OutFrame frame = encode(message);
    EXPECT_LE(frame.payload.size(), find_rule(frame.type)->max_bytes) << name_of(frame.type);
  }
}

TEST(HeadToNode, LargestFieldsFitIntoTheFrame) {
  const auto attempt = base::AttemptId(UINT64_MAX);
  base::PlacedTasks placed = some_placed();
  placed.tasks_on_node.assign(limits::kMaxNodes, limits::kMaxTasksPerNode);
  placed.cores.assign(limits::kMaxCoresPerNode, limits::kMaxCoresPerNode - 1);
  const std::string spec(limits::kMaxExecBytes + 100'000, 's');
  const base::HeadToNode messages[] = {base::PrepareTasks{placed, spec},
                                       base::StartTasks{attempt},
                                       base::SignalTasks{attempt, 64},
                                       base::KillTasks{attempt},
                                       base::ForgetTasks{attempt},
                                       base::ParkTasks{attempt, true, attempt, base::Bytes::max()}};
  for (const auto& message : messages) {
    const OutFrame frame = encode(message);
    EXPECT_LE(frame.payload.size(), find_rule(frame.type)->max_bytes) << name_of(frame.type);
  }
}

template <class Message>
struct Bad {
  const char* field;
  std::function<void(Message&)> spoil;
};

TEST(Timetable, NamesTheInvalidField) {
  const Bad<wire::SetTimetable> cases[] = {
      {"cycle_ns", [](auto& m) { m.set_cycle_ns(-1); }},
      {"slice_ns", [](auto& m) { m.set_slice_ns(-1); }},
      {"slice_ns", [](auto& m) { m.set_slice_ns(1); }},
      {"first_slice_ns", [](auto& m) { m.set_first_slice_ns(0); }},
      {"first_slice_ns", [](auto& m) { m.set_first_slice_ns(60'000'000); }},
      {"segments", [](auto& m) { m.set_cycle_ns(151'000'000); }},
      {"segments", [](auto& m) { m.clear_segments(); }},
      {"segments", [](auto& m) { m.mutable_segments(0)->set_offset_ns(1); }},
      {"segments", [](auto& m) { m.mutable_segments(0)->set_length_ns(0); }},
      {"segments", [](auto& m) { m.mutable_segments(0)->set_length_ns(-5); }},
      {"segments", [](auto& m) { m.mutable_segments(1)->set_offset_ns(99'000'000); }},
      {"segments", [](auto& m) { m.mutable_segments(1)->set_length_ns(INT64_MAX); }},
      {"segments",
       [](auto& m) {
         for (std::size_t i = 0; i < limits::kMaxSegmentsPerCycle; ++i) m.add_segments();
       }},
      {"segments.jobs", [](auto& m) { m.mutable_segments(0)->add_jobs(1); }},
      {"segments.jobs",
       [](auto& m) {
         m.mutable_segments(0)->clear_jobs();
         for (std::uint64_t i = 0; i <= limits::kMaxJobsPerNode; ++i) {
           m.mutable_segments(0)->add_jobs(i);
         }
       }},
      {"managed",
       [](auto& m) {
         for (std::size_t i = 0; i < limits::kMaxActiveJobs; ++i) m.add_managed(i);
       }},
  };
  for (const auto& [field, spoil] : cases) {
    auto message = to_wire(base::SetTimetable{some_timetable()});
    spoil(message);
    const auto timetable = from_wire(message);
    ASSERT_FALSE(timetable.has_value()) << field;
    EXPECT_TRUE(timetable.error().context().starts_with(fmt::format("SetTimetable.{} ", field)))
        << timetable.error().message();
  }
}

wire::TaskExit& exit_of(wire::NodeHello& message) {
  return *message.mutable_attempts(0)->add_exits();
}

TEST(NodeHello, NamesTheInvalidField) {
  const Bad<wire::NodeHello> cases[] = {
      {"name", [](auto& m) { m.set_name(""); }},
      {"name", [](auto& m) { m.set_name("node\n01"); }},
      {"name", [](auto& m) { m.set_name(std::string(65, 'n')); }},
      {"cores", [](auto& m) { m.set_cores(0); }},
      {"cores", [](auto& m) { m.set_cores(limits::kMaxCoresPerNode + 1); }},
      {"attempts.attempt", [](auto& m) { m.mutable_attempts(0)->set_attempt(0); }},
      {"attempts.filled_ns", [](auto& m) { m.mutable_attempts(0)->set_filled_ns(-1); }},
      {"attempts.phase", [](auto& m) { m.mutable_attempts(0)->set_phase(4); }},
      {"features", [](auto& m) { m.add_features("a b"); }},
      {"features",
       [](auto& m) {
         for (std::size_t i = 0; i < limits::kMaxNodeFeatures; ++i) m.add_features("f");
       }},
      {"generic.name", [](auto& m) { *m.add_generic() = m.generic(0); }},
      {"generic.count", [](auto& m) { m.mutable_generic(0)->set_count(1U << 30U); }},
      {"attempts.exits.code", [](auto& m) { exit_of(m).set_code(256); }},
      {"attempts.exits.code", [](auto& m) { exit_of(m).set_code(-1); }},
      {"attempts.exits.signal", [](auto& m) { exit_of(m).set_signal(-1); }},
      {"attempts.exits.rank", [](auto& m) { exit_of(m).set_rank(limits::kMaxTasksPerJob); }},
      {"attempts.exits",
       [](auto& m) {
         for (std::size_t i = 0; i <= limits::kMaxTasksPerNode; ++i) exit_of(m).set_rank(1);
       }},
  };
  for (const auto& [field, spoil] : cases) {
    auto message = to_wire(some_hello());
    spoil(message);
    const auto hello = from_wire(message);
    ASSERT_FALSE(hello.has_value()) << field;
    EXPECT_TRUE(hello.error().context().starts_with(fmt::format("NodeHello.{} ", field)))
        << hello.error().message();
  }
}

TEST(PlacedTasks, RejectsImpossibleValues) {
  const Bad<wire::PrepareTasks> cases[] = {
      {"attempt", [](auto& m) { m.set_attempt(0); }},
      {"node_index", [](auto& m) { m.set_node_index(3); }},
      {"node_index", [](auto& m) { m.clear_tasks_on_node(); }},
      {"tasks_on_node", [](auto& m) { m.set_tasks_on_node(0, limits::kMaxTasksPerNode + 1); }},
      {"tasks_on_node",
       [](auto& m) {
         for (std::size_t i = 0; i < limits::kMaxNodes; ++i) m.add_tasks_on_node(1);
       }},
      {"tasks_on_node",
       [](auto& m) {
         for (int i = 0; i < 257; ++i) m.add_tasks_on_node(limits::kMaxTasksPerNode);
       }},
      {"cores", [](auto& m) { m.add_cores(limits::kMaxCoresPerNode); }},
      {"restarts", [](auto& m) { m.set_restarts(base::kAttemptsPerJob); }},
      {"nodes", [](auto& m) { m.add_nodes(3); }},
      {"nodes", [](auto& m) { m.set_nodes(0, limits::kMaxNodes); }},
      {"generic.name", [](auto& m) { m.add_generic(); }},
      {"generic.indices", [](auto& m) { m.mutable_generic(0)->add_indices(1U << 30U); }},
  };
  for (const auto& [field, spoil] : cases) {
    wire::PrepareTasks message;
    ASSERT_TRUE(parse_into(message, encode(base::PrepareTasks{some_placed(), "x"}).payload));
    spoil(message);
    const auto value = decode_head_to_node(FrameType::PrepareTasks, message.SerializeAsString());
    ASSERT_FALSE(value.has_value()) << field;
    EXPECT_TRUE(value.error().context().starts_with(fmt::format("PrepareTasks.{} ", field)))
        << value.error().message();
  }
}

TEST(NodeToHead, TruncationNeverCrashesTheDecoder) {
  const OutFrame frame = encode(base::NodeToHead(some_hello()));
  for (std::size_t size = 0; size < frame.payload.size(); ++size) {
    const auto hello = decode_node_to_head(frame.type, frame.payload.substr(0, size));
    if (hello) {
      EXPECT_EQ(std::get<base::NodeHello>(*hello).info.name, "node01");
    }
  }
  EXPECT_FALSE(decode_node_to_head(FrameType::NodeHello, "").has_value());
  EXPECT_FALSE(decode_node_to_head(FrameType::Exited, "").has_value());
  EXPECT_FALSE(decode_head_to_node(FrameType::SignalTasks, "\x08\x01").has_value());
}

}  // namespace
}  // namespace score::proto
