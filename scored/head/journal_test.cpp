#include "tests/support/head/head_fixture.hpp"
#include "tests/support/shared/recorded_events.hpp"

#include <gtest/gtest.h>

#include <string>

namespace score::head {
namespace {

class HeadJournal : public HeadFixture {};

TEST_F(HeadJournal, HasTheEventsOfTheHead) {
  const RecordedEvents journal;
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  const AttemptId attempt = launch(client, first, second);
  FakeClient operating = connect(UserId(1002));
  operating.say(setting("quantum", "50ms"));
  operating.say(cancel(JobId(1)));
  settle();
  for (FakeNode* node : {&first, &second}) {
    Exited exited;
    exited.attempt = attempt;
    exited.exits = {{Rank(node == &first ? 0U : 1U), 0, 15}};
    node->say(TaskEnded{attempt, exited.exits[0]});
    node->say(exited);
  }
  settle();
  head_->nodes().lost(NodeId(1), *second.connection);
  for (int i = 0; i < 20; ++i) {  // n0 stays alive
    first.session->dispatch(frame_of(wire::Heartbeat()));
    pass(1s);
  }
  EXPECT_EQ(journal.count("MESSAGE_ID", "acd52845365c41fc8c41d2b3b9597fb9"), 2) << "nodes up";
  EXPECT_EQ(journal.count("MESSAGE_ID", "c20e73204a49401998e4c36ef5992d5a"), 1) << "start job";
  EXPECT_EQ(journal.count("MESSAGE_ID", "4cadf51f3d2f4587bd10414e633ee8b1"), 1) << "quantum";
  EXPECT_EQ(journal.count("MESSAGE_ID", "d136862c717640af93530aad39b42132"), 1) << "cancel";
  EXPECT_EQ(journal.count("MESSAGE_ID", "07b20d861a7d43c2b2a0f99c80ab8f12"), 1) << "end job";
  EXPECT_EQ(journal.count("MESSAGE_ID", "6eb31b18a0da4116afc8c878962017ae"), 1) << "down";
  EXPECT_EQ(journal.count("JOB_ID", "1"), 3);
  EXPECT_EQ(journal.count("SLOT", "0"), 1) << "of its start";
  EXPECT_EQ(journal.count("RANK", "0"), 1) << "which failed";
  EXPECT_EQ(journal.count("USER_NAME", "u1002"), 2);
  EXPECT_EQ(journal.count("NODE", "n1"), 2);
}

TEST_F(HeadJournal, ShowsViewersWhichNodesAreDrained) {
  FakeNode node = connect_node(0);
  FakeClient root = connect(UserId(0));
  wire::DrainNodes drain;
  drain.add_nodes("n[0-1]");
  drain.set_reason("disk");
  root.say(drain);
  drain.set_resume(true);
  root.say(drain);
  settle();
  std::vector<std::string> texts;
  for (const monitor::Event& event : head_->events().log().events()) {
    if (event.kind == monitor::EventKind::Node) texts.push_back(event.text);
  }
  const std::vector<std::string> wanted = {"n0 is up", "n0 is up, but drained: disk",
                                           "n1 is unknown, and drained: disk", "n0 is up",
                                           "n1 is unknown"};
  EXPECT_EQ(texts, wanted);
}

}  // namespace
}  // namespace score::head
