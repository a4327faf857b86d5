// Tests a document, and the parts of it that each user sees.
#include "monitor/model/document.hpp"

#include <gtest/gtest.h>

namespace score::monitor {
namespace {

ClusterView cluster() {
  ClusterView view;
  view.head = "h";
  view.now = TimePoint(100s);
  view.quantum = 100ms;
  NodeRow node;
  node.name = "n0";
  node.state = "up";
  node.jobs = {JobId(1)};
  view.nodes.push_back(node);
  view.rows.push_back({SlotIndex(0), true, {{JobId(1)}}});
  view.order = {SlotIndex(0)};
  JobRow job;
  job.job = JobId(1);
  job.user = UserId(5);
  job.user_name = "alice";
  job.name = "<script>";
  job.command = "secret arguments";
  job.state = "running";
  view.jobs.push_back(job);
  return view;
}

std::string document(const ClusterView& view, const Sight& sight, const Filter& filter = {}) {
  DocumentOptions options;
  options.sight = sight;
  options.filter = filter;
  return write_document(view, ClusterMeter(), options);
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

TEST(Document, IsOneLineWithEverySection) {
  const std::string text = document(cluster(), {});
  EXPECT_FALSE(has(text, "\n"));
  for (const char* key : {"cluster", "nodes", "matrix", "slices", "jobs", "processes", "switches",
                          "traffic", "events"}) {
    EXPECT_TRUE(has(text, "\"" + std::string(key) + "\":")) << key;
  }
}

TEST(Document, HasTheActivityOfAJob) {
  ClusterView view = cluster();
  view.jobs[0].activity = "deadlocked";
  EXPECT_TRUE(has(document(view, {}), R"("activity":"deadlocked","idle":false)"));
}

TEST(Document, ShowsFillingAndWaitsOfRanks) {
  ClusterView view = cluster();
  view.jobs[0].waits = {"rank 0 in MPI_Recv"};
  view.is_private = true;
  ClusterMeter meter;
  NodeSample sample;
  sample.taken = TimePoint(99s);
  sample.gangs.resize(1);
  sample.gangs[0].attempt = AttemptId(257);
  sample.gangs[0].fills = true;
  meter.feed(NodeId(0), sample);
  DocumentOptions options;
  options.sight.user = UserId(5);
  const std::string mine = write_document(view, meter, options);
  EXPECT_TRUE(has(mine, R"("runs":[],"fills":[[0,1,99.000000,null]])"));
  EXPECT_TRUE(has(mine, R"("waits":["rank 0 in MPI_Recv"])"));
  EXPECT_TRUE(has(document(view, {}), R"("waits":[])")) << "of another's job";
}

// Adds two samples; the job ran for this time between them.
void measure(ClusterMeter& meter, NodeId node, Duration ran) {
  GangSample gang;
  gang.attempt = AttemptId(257);
  gang.tasks.resize(1);
  for (const Duration scheduled : {Duration(1s), 1s + ran}) {
    NodeSample sample;
    sample.taken = TimePoint(90s) + scheduled;
    gang.scheduled = scheduled;
    sample.gangs = {gang};
    meter.feed(node, sample);
  }
}

TEST(Document, HasAllLoadsAfterEachTaskWasMeasured) {
  ClusterView view = cluster();
  view.nodes.push_back(view.nodes[0]);
  view.jobs[0].tasks = 2;
  ClusterMeter meter;
  EXPECT_FALSE(has_all_loads(view, meter));
  measure(meter, NodeId(0), 50ms);
  EXPECT_FALSE(has_all_loads(view, meter)) << "of one node";
  measure(meter, NodeId(1), 0ms);
  EXPECT_FALSE(has_all_loads(view, meter)) << "it did not run there between two samples";
  measure(meter, NodeId(1), 200ms);
  EXPECT_TRUE(has_all_loads(view, meter));
  meter.interrupt(NodeId(0), TimePoint(100s));
  EXPECT_FALSE(has_all_loads(view, meter)) << "of a node that was lost";
  view.jobs[0].idle = true;
  EXPECT_TRUE(has_all_loads(view, meter)) << "it has no slices";
  view.jobs[0].idle = false;
  view.jobs[0].state = "suspended";
  EXPECT_TRUE(has_all_loads(view, meter));
}

TEST(Document, LeavesOutUnrequestedParts) {
  Filter filter;
  filter.parts = *parse_parts("jobs");
  const std::string text = document(cluster(), {}, filter);
  EXPECT_TRUE(has(text, "\"cluster\":"));
  EXPECT_TRUE(has(text, "\"jobs\":[{"));
  EXPECT_FALSE(has(text, "\"nodes\":["));
  filter.job = JobId(2);
  EXPECT_TRUE(has(document(cluster(), {}, filter), "\"jobs\":[]"));
}

TEST(Document, ShowsPeersOnRequest) {
  ClusterMeter meter;
  meter.peers().set_nodes(2);
  GangSample gang;
  gang.attempt = AttemptId(257);
  const std::vector<NodeId> nodes = {NodeId(0), NodeId(1)};
  for (const std::uint32_t second : {99U, 100U}) {
    gang.frames_to = {0, second * 12};
    meter.peers().feed(NodeId(0), TimePoint(Duration(1s) * second), gang, nodes);
  }
  DocumentOptions options;
  EXPECT_FALSE(has(write_document(cluster(), meter, options), "peers"));
  options.filter.parts = *parse_parts("peers");
  const std::string text = write_document(cluster(), meter, options);
  EXPECT_TRUE(has(text, R"("peers":{"nodes_per_cell":1,"cells":[[0,1,12)")) << text;
  options.filter.job = JobId(2);
  EXPECT_TRUE(has(write_document(cluster(), meter, options), R"("cells":[])"));
}

TEST(Document, HidesOthersWhenPrivate) {
  ClusterView view = cluster();
  EXPECT_TRUE(has(document(view, {}), "secret arguments"));
  view.is_private = true;
  for (const Sight& sight : {Sight{}, Sight{UserId(6), false}}) {
    const std::string text = document(view, sight);
    EXPECT_FALSE(has(text, "secret"));
    EXPECT_FALSE(has(text, "alice"));
    EXPECT_FALSE(has(text, "script"));
    EXPECT_TRUE(has(text, "\"user\":null"));
  }
  EXPECT_TRUE(has(document(view, {UserId(5), false}), "secret arguments"));
  EXPECT_TRUE(has(document(view, {UserId(6), true}), "secret arguments"));
}

TEST(Document, FilterDoesNotRevealAUserName) {
  ClusterView view = cluster();
  Filter filter;
  filter.user = "alice";
  EXPECT_FALSE(has(document(view, {}, filter), "\"jobs\":[]"));
  view.is_private = true;
  EXPECT_TRUE(has(document(view, {}, filter), "\"jobs\":[]"));
}

Event event_of(EventKind kind) {
  Event event;
  event.kind = kind;
  event.text = "text";
  return event;
}

TEST(EventLog, LateSwitchesLeaveRoomForOtherEvents) {
  EventLog log;
  for (int i = 0; i < 10; ++i) log.add(event_of(EventKind::Job));
  for (int i = 0; i < 100; ++i) log.add(event_of(EventKind::Late));
  const auto jobs = std::ranges::count(log.events(), EventKind::Job, &Event::kind);
  EXPECT_EQ(jobs, 10);
  EXPECT_EQ(std::ssize(log.events()), 10 + EventLog::kKeptLate);
  EXPECT_EQ(log.events().back().id, 110U) << "the newest ones stay";
  for (int i = 0; i < 100; ++i) log.add(event_of(EventKind::Job));
  EXPECT_EQ(log.events().size(), EventLog::kKept);
}

TEST(Document, ShowsEventsOfOthersWithoutNames) {
  ClusterView view = cluster();
  EventLog log;
  Event event;
  event.kind = EventKind::Job;
  event.text = "job 1 (<script> of alice) running";
  event.public_text = "job 1 running";
  event.job = JobId(1);
  log.add(event);
  event.job = JobId(9);  // no longer in the list
  log.add(event);
  view.events = &log.events();
  EXPECT_TRUE(has(document(view, {}), "of alice"));
  view.is_private = true;
  EXPECT_FALSE(has(document(view, {}), "of alice"));
  EXPECT_TRUE(has(document(view, {}), "\"text\":\"job 1 running\""));
  EXPECT_TRUE(has(document(view, {UserId(7), true}), "of alice"));
}

}  // namespace
}  // namespace score::monitor
