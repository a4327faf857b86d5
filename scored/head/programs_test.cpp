// The head checks and completes a job's specification before it sends it to the nodes.
#include "tests/support/head/head_fixture.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

class ProgramsTest : public HeadFixture {};

TEST_F(ProgramsTest, ProgramTasksMustAddUp) {
  FakeClient client = connect(kAlice);
  wire::Submit several = submission(2);
  several.mutable_spec()->mutable_programs(0)->set_tasks(1);
  auto* second = several.mutable_spec()->add_programs();
  second->add_argv("date");
  second->set_tasks(2);
  EXPECT_EQ(submit(client, several), JobId());
  second->set_tasks(1);
  EXPECT_NE(submit(client, several), JobId());
}

}  // namespace
}  // namespace score::head
