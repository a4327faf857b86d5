#include "gang/schedule/publisher.hpp"

#include "gang/job/epochs.hpp"
#include "tests/support/gang/schedule_bench.hpp"

namespace score::gang {
namespace {

struct PublisherBench : ScheduleBench {
  explicit PublisherBench(std::uint32_t nodes) : ScheduleBench(nodes) {
    for (NodeIndex node = 0; node < nodes; ++node) {
      publisher.add_node();
      publisher.node_connected(node, false);
    }
    step.actions.clear();
  }

  // Publishes and returns the timetables that are sent now, by node.
  std::map<NodeId, base::Timetable> publish() {
    step.actions.clear();
    published = publisher.publish(step);
    EXPECT_TRUE(publisher.check());
    std::map<NodeId, base::Timetable> sent;
    for (const Action& action : step.actions) {
      const auto* send = std::get_if<SendToNode>(&action);
      const auto* table = send ? std::get_if<base::SetTimetable>(&send->message) : nullptr;
      if (table != nullptr) sent[send->node] = table->timetable;
    }
    return sent;
  }

  Publisher publisher{tables, placer.matrix()};
  bool published = false;
};

TEST(Publisher, SendsTimetablesOnlyToNodesWhoseColumnChanged) {
  PublisherBench b(3);
  Job& job = b.run(PublisherBench::on_nodes(2));
  const auto sent = b.publish();
  EXPECT_TRUE(b.published);
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent.begin()->second.managed, std::vector{job.attempt()});
  b.step.now += 1s;
  b.tables.jobs.mark_changed();
  EXPECT_TRUE(b.publish().empty()) << "nothing differs";
}

TEST(Publisher, GivesNodesTheirNotice) {
  PublisherBench b(1);
  b.run(PublisherBench::on_nodes(1));
  EXPECT_EQ(b.publish().at(NodeId{0}).start, b.step.now + b.tables.config.idle_lead);
  b.step.now += 1s;
  b.run(PublisherBench::on_nodes(1));
  const auto sent = b.publish();
  EXPECT_GE(sent.at(NodeId{0}).start, b.step.now + b.tables.config.epoch_lead);
  EXPECT_EQ(sent.at(NodeId{0}).cycle, 2 * b.tables.config.quantum);
}

TEST(Publisher, FastChangesShareAnEpoch) {
  PublisherBench b(2);
  b.run(PublisherBench::on_nodes(1));
  b.publish();
  const Epoch first = b.publisher.epoch();
  b.run(PublisherBench::on_nodes(1));
  b.step.now += 1ms;
  EXPECT_TRUE(b.publish().empty());
  EXPECT_FALSE(b.published);
  b.step.now = *b.publisher.next_time();
  EXPECT_EQ(b.publish().size(), 1U);
  EXPECT_EQ(b.publisher.epoch(), Epoch{first.value() + 1});
  EXPECT_FALSE(b.publisher.next_time());
}

TEST(Publisher, CountsScheduledTimeFromTimetableStart) {
  PublisherBench b(1);
  Job& job = b.run(PublisherBench::on_nodes(1));
  b.publish();
  const TimePoint start = b.step.now + b.tables.config.idle_lead;
  EXPECT_EQ(b.publisher.scheduled(job, start), 0s);
  EXPECT_EQ(b.publisher.scheduled(job, start + 3s), 3s);
  b.publisher.stop(job, start + 1s);
  EXPECT_EQ(b.publisher.scheduled(job, start + 3s), 1s);
}

TEST(Publisher, DisplacedJobIsFrozenAndReported) {
  PublisherBench b(1);
  Job& normal = b.run(PublisherBench::on_nodes(1));
  b.publish();
  b.step.now += 1s;
  Job& high = b.run(PublisherBench::on_nodes(1, base::Queue::High));
  const base::Timetable table = b.publish().at(NodeId{0});
  ASSERT_EQ(table.segments.size(), 1U);
  EXPECT_EQ(table.segments[0].jobs, std::vector{high.attempt()});
  EXPECT_EQ(table.managed, (std::vector{normal.attempt(), high.attempt()}));
  EXPECT_EQ(table.displaced, std::vector{normal.attempt()});
  EXPECT_TRUE(normal.displaced);
}

TEST(Publisher, ReconnectedNodeIsSentATimetable) {
  PublisherBench b(1);
  b.run(PublisherBench::on_nodes(1));
  b.publish();
  b.step.now += 1s;
  b.publisher.node_connected(0, true);
  b.tables.jobs.mark_changed();
  EXPECT_EQ(b.publish().at(NodeId{0}).epoch, Epoch{2});
}

TEST(Publisher, LaterHeadHasGreaterEpochs) {
  PublisherBench b(1);
  b.publisher.set_incarnation(Epoch{3});
  b.run(PublisherBench::on_nodes(1));
  const Epoch first = b.publish().at(NodeId{0}).epoch;
  EXPECT_TRUE(is_epoch_up_to(Epoch{3}, first));
  EXPECT_FALSE(is_epoch_up_to(Epoch{2}, first));
  b.publisher.set_incarnation(Epoch{3});
  EXPECT_EQ(b.publisher.epoch(), first);
  b.publisher.set_incarnation(Epoch{4});
  EXPECT_GT(b.publisher.epoch(), first);
  b.publisher.set_incarnation(Epoch{UINT64_MAX});
  EXPECT_LT(b.publisher.epoch(), Epoch{UINT64_MAX - kMostEpochStep});
}

}  // namespace
}  // namespace score::gang
