#include "base/request/notices.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace score {
namespace {

std::string kinds_of(std::string_view text) {
  const auto choice = parse_mail_types(text);
  if (!choice) return choice.error().context();
  std::string out;
  for (unsigned i = 0; i < 10; ++i) {
    const auto kind = static_cast<NoticeKind>(i);
    if (choice->kinds.has(kind)) (out += out.empty() ? "" : ",") += name_of(kind);
  }
  return choice->array_tasks ? out + "+tasks" : out;
}

TEST(MailTypes, ReadsWordsInEitherCase) {
  EXPECT_EQ(kinds_of("BEGIN,end"), "begin,end");
  EXPECT_EQ(kinds_of("FAIL, TIME_LIMIT_90 ,Time_Limit"), "fail,time_limit,time_limit_90");
  EXPECT_EQ(kinds_of("ALL"), "begin,end,fail,requeue");
  EXPECT_EQ(kinds_of("END,ARRAY_TASKS"), "end+tasks");
  EXPECT_EQ(kinds_of("ALL,NONE"), "");
  EXPECT_EQ(kinds_of("NONE,TIME_LIMIT_50,TIME_LIMIT_80,REQUEUE"),
            "requeue,time_limit_80,time_limit_50");
}

TEST(MailTypes, RefusesOtherWordsInOneLine) {
  for (const char* text : {"", "START", "END,", "BEGIN END", "node_down", "\x1b[2J"}) {
    const auto choice = parse_mail_types(text);
    ASSERT_FALSE(choice) << text;
    EXPECT_EQ(choice.error().context().find('\n'), std::string::npos);
    EXPECT_EQ(choice.error().context().find('\x1b'), std::string::npos);
    EXPECT_NE(choice.error().context().find("TIME_LIMIT_90"), std::string::npos);
  }
}

TEST(MailTypes, SurviveRandomBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string text(random() % 40, '\0');
    for (char& letter : text) letter = static_cast<char>(random());
    (void)parse_mail_types(text);
    if (check_mail_address(text)) {
      EXPECT_EQ(text.find_first_of("\r\n \t,"), std::string::npos);
      EXPECT_NE(text.front(), '-');
    }
    NoticeChoice choice;
    (void)add_notice_word(text, choice);
  }
}

TEST(NoticeWords, AreTheNamesOfTheKinds) {
  NoticeChoice choice;
  EXPECT_TRUE(add_notice_word("node_down", choice));
  EXPECT_TRUE(add_notice_word("array_tasks", choice));
  EXPECT_TRUE(choice.kinds.has(NoticeKind::NodeDown) && choice.array_tasks);
  EXPECT_FALSE(add_notice_word("ALL", choice));
  EXPECT_FALSE(add_notice_word("", choice));
}

TEST(MailAddress, AcceptsOneNameOrAddress) {
  for (const char* good : {"alice", "alice@example.org", "a.b+c=d@x-y.example", "a!b%c@d", "42"}) {
    EXPECT_TRUE(check_mail_address(good)) << good;
  }
  EXPECT_TRUE(check_mail_address(std::string(kMaxMailAddress, 'a')));
}

TEST(MailAddress, RefusesWhatIsNoSingleAddress) {
  for (const char* bad :
       {"", "-oQ/tmp", "a\nBcc: b", "a\rb", "a b", "a,b", "A <a@b>", "|sh", "/tmp/x", "\"a b\"@c",
        "@a:b@c", "a\x7f", "a\x01", "J\xc3\xb6rg@example.org", ":include:/etc/passwd"}) {
    const auto checked = check_mail_address(bad);
    ASSERT_FALSE(checked) << bad;
    EXPECT_EQ(checked.error().context().find('\n'), std::string::npos);
  }
  const auto longer = check_mail_address(std::string(kMaxMailAddress + 1, 'a'));
  ASSERT_FALSE(longer);
  EXPECT_TRUE(longer.error().is(Errc::TooLarge));
}

}  // namespace
}  // namespace score
