#include "proto/convert/words.hpp"

#include <gtest/gtest.h>

namespace score::proto {
namespace {

TEST(Words, ValueOfNewerReleaseIsUnknown) {
  EXPECT_EQ(word_of(wire::NodeStatus::SUSPECT), "suspect");
  EXPECT_EQ(word_of(static_cast<wire::NodeStatus::State>(77)), "unknown");
  EXPECT_EQ(word_of(static_cast<wire::FileFact::Role>(-1)), "file");
  EXPECT_EQ(word_of(wire::Switching::REAL_TIME), "real-time");
  EXPECT_EQ(word_of(wire::Switching::PRIORITY_UNKNOWN), "");
}

TEST(Words, ControlNamesReasonForTls) {
  wire::NodeStatus node;
  EXPECT_EQ(control_words(node), "tls");
  node.set_control_problem("no answer");
  EXPECT_EQ(control_words(node), "tls: no answer");
  node.set_control_path(wire::NodeStatus::PM);
  EXPECT_EQ(control_words(node), "pm");
}

TEST(Words, StateOfHeadCountsMissingTransactions) {
  wire::HeadState head;
  EXPECT_EQ(state_words(head), "unknown") << "the head is older";
  head.set_state(wire::HeadState::BEHIND);
  head.set_missing(7);
  EXPECT_EQ(state_words(head), "not connected, 7 transactions behind");
  head.set_is_connected(true);
  EXPECT_EQ(state_words(head), "7 transactions behind");
  head.set_state(wire::HeadState::NO_COPY);
  EXPECT_EQ(state_words(head), "has no copy of the database yet");
  head.set_state(wire::HeadState::UNASSESSED);
  EXPECT_EQ(state_words(head), "connected");
  head.set_state(wire::HeadState::STANDS_BY);
  head.set_reason("no majority");
  EXPECT_EQ(state_words(head), "no majority");
  head.set_state(wire::HeadState::LEADS);
  head.set_reason("lease in etcd");
  EXPECT_EQ(state_words(head), "in charge, lease in etcd");
}

}  // namespace
}  // namespace score::proto
