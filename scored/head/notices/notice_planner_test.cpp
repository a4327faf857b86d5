#include "scored/head/notices/notice_planner.hpp"

#include "base/model/model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace score::head {
namespace {

const WallTime kNow{Duration(1'795'435'200'000'000'000)};

NoticeKinds kinds(const std::vector<NoticeKind>& list) {
  NoticeKinds out;
  for (const NoticeKind kind : list) out.add(kind);
  return out;
}

NoticeChoice wants(const std::string& words) {
  return words.empty() ? NoticeChoice() : parse_mail_types(words).value();
}

JobHappening happening(const std::vector<NoticeKind>& list, const std::string& words) {
  JobHappening what;
  what.kinds = kinds(list);
  what.job.set_job(7);
  what.job.set_user(1000);
  what.job.set_user_name("alice");
  what.job.set_name("relax");
  what.job.set_state(static_cast<std::uint32_t>(JobState::Failed));
  what.mail = wants(words);
  what.address = "alice";
  return what;
}

NotifyConfig with_mail() {
  NotifyConfig config;
  config.sendmail = "/usr/sbin/sendmail";
  return config;
}

Webhook webhook(const std::string& url, std::initializer_list<const char*> events) {
  Webhook made;
  made.url = url;
  for (const char* event : events) EXPECT_TRUE(add_notice_word(event, made.choice));
  return made;
}

// Returns the words of the events of all notices: "time_limit".
std::string events(const std::vector<Notice>& notices) {
  std::string out;
  for (const Notice& notice : notices) {
    for (const std::string before : {"X-Scored-Event: ", "\"event\":\""}) {
      const auto at = notice.text.find(before);
      if (at == std::string::npos) continue;
      const auto begin = at + before.size();
      out += (out.empty() ? "" : ",") +
             notice.text.substr(begin, notice.text.find_first_of("\n\"", begin) - begin);
    }
  }
  return out;
}

// The table of decisions: what happened, what the user asked for, what is sent.
TEST(NoticePlanner, ChoosesTheMostTellingKind) {
  using enum NoticeKind;

  struct Row {
    std::vector<NoticeKind> happened;
    const char* asked;
    const char* sent;
  };

  const std::vector<Row> rows = {
      {{Begin}, "ALL", "begin"},
      {{Begin}, "END", ""},
      {{End}, "END", "end"},
      {{End}, "FAIL", ""},
      {{End, Fail}, "ALL", "fail"},
      {{End, Fail}, "END", "end"},
      {{End, Fail}, "FAIL", "fail"},
      {{End, Fail, TimeLimit}, "ALL", "fail"},
      {{End, Fail, TimeLimit}, "ALL,TIME_LIMIT", "time_limit"},
      {{End, Fail, TimeLimit}, "TIME_LIMIT_90", ""},
      {{Requeue}, "REQUEUE", "requeue"},
      {{TimeLimit50, TimeLimit80}, "TIME_LIMIT_50", "time_limit_50"},
      {{TimeLimit50, TimeLimit80}, "TIME_LIMIT_50,TIME_LIMIT_80", "time_limit_80"},
      {{Begin, End}, "NONE", ""},
      {{}, "ALL", ""},
  };
  for (const Row& row : rows) {
    NoticePlanner planner("virt", Epoch(3));
    const auto sent = planner.plan(happening(row.happened, row.asked), with_mail(), kNow);
    EXPECT_EQ(events(sent), row.sent) << row.asked;
  }
}

TEST(NoticePlanner, MailGoesToTheAddressAsAnArgument) {
  NoticePlanner planner("virt", Epoch(3));
  const auto sent = planner.plan(happening({NoticeKind::End}, "END"), with_mail(), kNow);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].command,
            (std::vector<std::string>{"/usr/sbin/sendmail", "-oi", "--", "alice"}));
  EXPECT_EQ(sent[0].user, UserId(1000));
  EXPECT_EQ(sent[0].id, "3.1");
  auto evil = happening({NoticeKind::End}, "END");
  evil.address = "-oQ/tmp";  // a user may have such a name
  EXPECT_TRUE(planner.plan(evil, with_mail(), kNow).empty());
}

TEST(NoticePlanner, CommandGetsJson) {
  NotifyConfig config;
  config.command = "/usr/local/bin/tell";
  NoticePlanner planner("virt", Epoch(1));
  const auto sent = planner.plan(happening({NoticeKind::Begin}, "ALL"), config, kNow);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].command, (std::vector<std::string>{"/usr/local/bin/tell"}));
  EXPECT_NE(sent[0].text.find("\"mail_address\":\"alice\""), std::string::npos) << sent[0].text;
}

TEST(NoticePlanner, ArrayMakesOneNoticeOrOnePerTask) {
  auto array = happening({NoticeKind::End}, "END");
  array.job.set_array_job(7);
  auto task = array;
  task.job.set_job(9);
  task.job.set_array_task(2);
  NoticePlanner planner("virt", Epoch(1));
  EXPECT_EQ(planner.plan(array, with_mail(), kNow).size(), 1U);
  EXPECT_EQ(planner.plan(task, with_mail(), kNow).size(), 0U);
  array.mail = task.mail = wants("END,ARRAY_TASKS");
  EXPECT_EQ(planner.plan(array, with_mail(), kNow).size(), 0U);
  const auto sent = planner.plan(task, with_mail(), kNow);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_NE(sent[0].text.find("job 7_2 (relax)"), std::string::npos) << sent[0].text;
}

TEST(NoticePlanner, StepsMakeNoNotices) {
  auto step = happening({NoticeKind::End}, "END");
  step.job.set_step_of(6);
  NotifyConfig config = with_mail();
  config.webhooks = {webhook("https://a/", {"end"})};
  NoticePlanner planner("virt", Epoch(1));
  EXPECT_TRUE(planner.plan(step, config, kNow).empty());
}

TEST(NoticePlanner, WebhooksGetWhatTheyWant) {
  NotifyConfig config;
  config.webhooks = {webhook("https://a/", {"fail", "node_down"}), webhook("https://b/", {"end"}),
                     webhook("https://c/", {"begin"})};
  NoticePlanner planner("virt", Epoch(1));
  EXPECT_TRUE(is_wanted({}, config));
  EXPECT_FALSE(is_wanted(wants("ALL"), NotifyConfig()));
  const auto sent =
      planner.plan(happening({NoticeKind::End, NoticeKind::Fail}, "ALL"), config, kNow);
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(events(sent), "fail,end");
  EXPECT_EQ(sent[1].url, "https://b/");
  EXPECT_NE(sent[0].id, sent[1].id);
  const auto node = planner.plan({NoticeKind::NodeDown, "n1", "silent"}, config, kNow);
  ASSERT_EQ(node.size(), 1U);
  EXPECT_EQ(events(node), "node_down");
  EXPECT_NE(node[0].text.find("\"node\":{\"name\":\"n1\",\"reason\":\"silent\"}"),
            std::string::npos)
      << node[0].text;
  EXPECT_TRUE(planner.plan({NoticeKind::NodeUp, "n1", ""}, config, kNow).empty());
}

}  // namespace
}  // namespace score::head
