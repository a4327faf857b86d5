// Lists of jobs come in pages, so that no reply keeps the head's thread busy for long.
#include "tests/support/head/head_fixture.hpp"

namespace score::head {
namespace {

class ListTest : public HeadFixture {};

TEST_F(ListTest, RepeatedJobIdsAreAnsweredInPages) {
  FakeClient client = connect(kAlice);
  wire::Submit message = submission();
  message.mutable_spec()->mutable_programs(0)->add_argv(std::string(250, 'x'));
  ASSERT_EQ(submit(client, message), JobId(1));
  wire::ListJobs question;
  for (int i = 0; i < limits::kMaxJobsAsked; ++i) question.add_jobs(1);
  client.say(question);
  const auto lists = client.connection->all<wire::JobList>();
  ASSERT_EQ(lists.size(), 1u);
  EXPECT_GT(lists[0].jobs_size(), 100);
  EXPECT_LT(lists[0].ByteSizeLong(), 2 * limits::kMiB);
  question.add_jobs(1);
  client.say(question);
  EXPECT_EQ(client.connection->all<wire::JobList>().size(), 1u);
  ASSERT_EQ(client.connection->all<wire::Failed>().size(), 1u);
}

}  // namespace
}  // namespace score::head
