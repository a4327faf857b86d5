#include "scored/head/notices/notice_text.hpp"

#include "base/model/model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace score::head {
namespace {

const NoticeHead kEnd{NoticeKind::Fail, "3.1", "virt",
                      WallTime(Duration(1'795'435'200'000'000'000))};

wire::JobStatus failed_job() {
  wire::JobStatus job;
  job.set_job(7);
  job.set_user_name("alice");
  job.set_name("relax");
  job.set_state(static_cast<std::uint32_t>(JobState::Failed));
  job.set_exit_code(3);
  job.add_reasons("rank 0: exit code 3");
  job.add_nodes("n0");
  job.add_nodes("n1");
  job.set_submitted_wall_ns(1'795'435'190'000'000'000);
  job.set_started_wall_ns(1'795'435'192'000'000'000);
  job.set_ended_wall_ns(1'795'435'200'500'000'000);
  return job;
}

TEST(NoticeText, MailReadsAsSentences) {
  const std::string mail = mail_of(kEnd, {"scored@example.org", "alice"}, failed_job());
  EXPECT_EQ(mail,
            "From: scored@example.org\n"
            "To: alice\n"
            "Subject: [virt] job 7 (relax) has ended: failed, exit code 3\n"
            "Message-ID: <3.1@virt.scored>\n"
            "Auto-Submitted: auto-generated\n"
            "MIME-Version: 1.0\n"
            "Content-Type: text/plain; charset=utf-8\n"
            "Content-Transfer-Encoding: 8bit\n"
            "X-Scored-Event: fail\n"
            "X-Scored-Job: 7\n"
            "\n"
            "Job 7 (relax) of alice on cluster virt has ended: failed, exit code 3.\n"
            "\n"
            "  state       failed\n"
            "  reason      rank 0: exit code 3\n"
            "  nodes       n[0-1]\n"
            "  submitted   2026-11-23T11:59:50Z\n"
            "  started     2026-11-23T11:59:52Z\n"
            "  ended       2026-11-23T12:00:00Z\n"
            "  elapsed     0:00:08\n"
            "\n"
            "`score job 7` shows more.\n");
}

TEST(NoticeText, JsonHasOneLine) {
  const std::string json = json_of(kEnd, failed_job(), "a@b");
  EXPECT_EQ(json.find('\n'), json.size() - 1);
  for (const char* part : {"\"schema\":\"scored.notice/1\"", "\"event\":\"fail\"",
                           "\"exit_code\":3", "\"mail_address\":\"a@b\"", "\"nodes\":\"n[0-1]\"",
                           "\"state\":\"failed\"", "\"ended_unix_s\":1795435200.500"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << " in " << json;
  }
  wire::JobStatus running = failed_job();
  running.set_state(static_cast<std::uint32_t>(JobState::Running));
  EXPECT_NE(json_of(kEnd, running, "").find("\"exit_code\":null"), std::string::npos);
}

TEST(NoticeText, HeaderIsAsciiWhateverTheName) {
  EXPECT_EQ(header_text("plain (text)"), "plain (text)");
  EXPECT_EQ(header_text("J\xc3\xb6rg"), "=?utf-8?Q?J=C3=B6rg?=");
  EXPECT_EQ(header_text("=?x"), "=?utf-8?Q?=3D=3Fx?=");
  std::mt19937 random(5);
  for (int round = 0; round < 5'000; ++round) {
    std::string text(random() % 200, '\0');
    for (char& letter : text) letter = static_cast<char>(random());
    const std::string header = header_text(text);
    for (std::size_t at = 0; (at = header.find('\n', at)) != std::string::npos; ++at) {
      EXPECT_EQ(header[at + 1], ' ') << "only folded lines";
    }
    for (const char letter : header) {
      EXPECT_TRUE(letter == '\n' || (letter >= ' ' && letter < 0x7F));
    }
  }
}

// A user can give a job any name; neither a header nor a control character gets into the mail.
TEST(NoticeText, TextOfUsersIsEscapedAndBounded) {
  std::mt19937 random(6);
  for (int round = 0; round < 500; ++round) {
    wire::JobStatus job = failed_job();
    std::string text(random() % 5'000, '\0');
    for (char& letter : text) letter = static_cast<char>(random());
    job.set_name("x\nBcc: victim@example.org\n\n" + text);
    job.set_user_name(text);
    for (int i = 0; i < 20; ++i) job.add_reasons(text);
    for (int i = 0; i < 20; ++i) job.add_nodes(text);
    job.set_state(static_cast<std::uint32_t>(random() % 100));
    const std::string mail = mail_of(kEnd, {"", "alice"}, job);
    const std::string head = mail.substr(0, mail.find("\n\n"));
    EXPECT_EQ(head.find("\nBcc"), std::string::npos);
    EXPECT_LT(mail.size(), 16U * 1024);
    const auto is_control = [](char c) {
      return c != '\n' && static_cast<unsigned char>(c) < 0x20;
    };
    EXPECT_TRUE(std::ranges::none_of(mail, is_control));
    EXPECT_LT(json_of(kEnd, job, "").size(), 64U * 1024);
  }
}

}  // namespace
}  // namespace score::head
