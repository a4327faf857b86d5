// In barrier mode the nodes of a job are notified when all of them have come.
#include "tests/support/gang/cluster_bench.hpp"

namespace score::gang {
namespace {

using base::Meeting;

struct Meetings : Bench {
  Meetings() {
    add_nodes(3);
    job = submit(on_nodes(3));
    other = submit(on_nodes(3));
    pass(500ms);
  }

  // Lets this node come; returns the nodes that are notified that all have met.
  std::vector<NodeId> comes(std::uint32_t node, JobId who, TimePoint boundary,
                            Meeting meeting = Meeting::Ready) {
    const auto actions = cluster.node_says(
        NodeId{node}, base::MeetingReached{view(who).attempt, meeting, boundary}, now);
    std::vector<NodeId> told;
    for (const Action& action : actions) {
      const auto* send = std::get_if<SendToNode>(&action);
      const auto* met = send ? std::get_if<base::MetAll>(&send->message) : nullptr;
      if (met == nullptr) continue;
      EXPECT_EQ(met->attempt, view(who).attempt);
      EXPECT_EQ(met->meeting, meeting);
      told.push_back(send->node);
    }
    take(actions);
    return told;
  }

  const std::vector<NodeId> all{NodeId{0}, NodeId{1}, NodeId{2}};
  JobId job, other;
};

constexpr TimePoint kThen{10s};

TEST(Meetings, AllAreNotifiedWhenTheLastHasCome) {
  Meetings m;
  EXPECT_TRUE(m.comes(1, m.job, kThen).empty());
  EXPECT_TRUE(m.comes(0, m.job, kThen).empty());
  EXPECT_EQ(m.comes(2, m.job, kThen), m.all);
  EXPECT_TRUE(m.comes(2, m.job, kThen).empty()) << "said twice";
}

TEST(Meetings, JobsAndMeetingsAreIndependent) {
  Meetings m;
  for (const std::uint32_t node : {0U, 1U}) {
    EXPECT_TRUE(m.comes(node, m.job, kThen).empty());
    EXPECT_TRUE(m.comes(node, m.job, kThen, Meeting::Stopped).empty());
    EXPECT_TRUE(m.comes(node, m.other, kThen).empty());
  }
  EXPECT_EQ(m.comes(2, m.other, kThen), m.all);
  EXPECT_EQ(m.comes(2, m.job, kThen, Meeting::Stopped), m.all);
}

TEST(Meetings, StragglerDoesNotDelayNextBoundary) {
  Meetings m;
  m.comes(0, m.job, kThen);
  m.comes(1, m.job, kThen);
  for (const std::uint32_t node : {0U, 1U}) m.comes(node, m.job, kThen + 100ms);
  EXPECT_TRUE(m.comes(2, m.job, kThen).empty()) << "too late for the first one";
  EXPECT_EQ(m.comes(2, m.job, kThen + 100ms), m.all);
}

TEST(Meetings, RoundingDoesNotMakeANewBoundary) {
  Meetings m;
  m.comes(0, m.job, kThen);
  m.comes(1, m.job, kThen + 20us);
  EXPECT_EQ(m.comes(2, m.job, kThen - 20us), m.all);
}

TEST(Meetings, NodeWithEndedTasksIsNotAwaited) {
  Meetings m;
  m.comes(0, m.job, kThen);
  m.comes(1, m.job, kThen);
  const AttemptId attempt = m.view(m.job).attempt;
  const auto actions =
      m.cluster.node_says(NodeId{2}, base::Exited{attempt, {{base::Rank{2}, 0, 0}}, {}}, m.now);
  std::size_t told = 0;
  for (const Action& action : actions) {
    const auto* send = std::get_if<SendToNode>(&action);
    told += send != nullptr && std::holds_alternative<base::MetAll>(send->message) ? 1 : 0;
  }
  EXPECT_EQ(told, 2U);
}

TEST(Meetings, NodeWithoutLinkIsNotAwaited) {
  Meetings m;
  m.comes(0, m.job, kThen);
  m.comes(1, m.job, kThen);
  std::vector<NodeId> told;
  for (const Action& action : m.cluster.node_disconnected(NodeId{2}, m.now)) {
    const auto* send = std::get_if<SendToNode>(&action);
    if (send && std::holds_alternative<base::MetAll>(send->message)) told.push_back(send->node);
  }
  EXPECT_EQ(told, (std::vector<NodeId>{NodeId{0}, NodeId{1}}));
  EXPECT_TRUE(m.comes(0, m.job, kThen + 100ms).empty());
  EXPECT_EQ(m.comes(1, m.job, kThen + 100ms), told);
}

TEST(Meetings, InventedBoundaryDelaysOnlyItsOwnJob) {
  Meetings m;
  m.comes(2, m.job, TimePoint::max());
  for (const std::uint32_t node : {0U, 1U}) EXPECT_TRUE(m.comes(node, m.job, kThen).empty());
  for (const std::uint32_t node : {0U, 1U}) m.comes(node, m.other, kThen);
  EXPECT_EQ(m.comes(2, m.other, kThen), m.all);
}

}  // namespace
}  // namespace score::gang
