#include "scored/head/notices/web_reply.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace score::head {
namespace {

std::string status(std::string_view bytes) {
  const auto read = read_status(bytes);
  if (!read) return "bad";
  return *read ? std::to_string(**read) : "more";
}

TEST(WebReply, ReadsTheStatusWhenItsLineIsComplete) {
  EXPECT_EQ(status("HTTP/1.1 204 No Content\r\n"), "204");
  EXPECT_EQ(status("HTTP/1.0 200\n"), "200");
  EXPECT_EQ(status("HTTP/1.1 500 Oh\r\nX: y\r\n\r\nbody"), "500");
  EXPECT_EQ(status("HTTP/1.1 20"), "more");
  EXPECT_EQ(status(""), "more");
}

TEST(WebReply, SkipsInterimReplies) {
  EXPECT_EQ(status("HTTP/1.1 100 Continue\r\n"), "more");
  EXPECT_EQ(status("HTTP/1.1 100 Continue\r\n\r\n"), "more");
  EXPECT_EQ(status("HTTP/1.1 103 Hints\r\nA: b\r\n\r\nHTTP/1.1 201 Made\r\n"), "201");
}

TEST(WebReply, RefusesWhatIsNotHttp) {
  for (const char* bad : {"SSH-2.0\r\n", "\r\n", "HTTP/1.1 99 x\r\n", "HTTP/1.1 2000\r\n",
                          "HTTP/2 200\r\n", "HTTP/1.1 600 x\r\n", "HTTP/1.1 abc\r\n", "\n"}) {
    EXPECT_EQ(status(bad), "bad") << bad;
  }
  EXPECT_EQ(status(std::string(2'000, 'x')), "bad");
}

TEST(WebReply, SurvivesRandomBytesAndTruncation) {
  const std::string good = "HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n";
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_EQ(status(good.substr(0, length)), "more") << length;
  }
  std::mt19937 random(9);
  for (int round = 0; round < 50'000; ++round) {
    std::string text = good.substr(0, random() % (good.size() + 1));
    for (unsigned i = 0; i < random() % 4 && !text.empty(); ++i) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    (void)read_status(text);
  }
}

TEST(WebReply, RetriesOnlyWhatMaySucceedLater) {
  for (const int later : {500, 502, 503, 408, 425, 429}) EXPECT_TRUE(is_worth_a_retry_after(later));
  for (const int never : {301, 400, 401, 403, 404, 410, 413}) {
    EXPECT_FALSE(is_worth_a_retry_after(never));
  }
}

TEST(WebRequest, NamesHostTokenAndId) {
  Notice notice;
  notice.id = "3.9";
  notice.text = "{}\n";
  const WebAddress address{true, "::1", 8443, "/a?b"};
  const std::string request = web_request(address, notice, "secret");
  EXPECT_TRUE(request.starts_with("POST /a?b HTTP/1.1\r\nHost: [::1]:8443\r\n")) << request;
  for (const char* line : {"Content-Length: 3\r\n", "Authorization: Bearer secret\r\n",
                           "Idempotency-Key: 3.9\r\n", "\r\n\r\n{}\n"}) {
    EXPECT_NE(request.find(line), std::string::npos) << line;
  }
  const WebAddress usual{true, "example.org", 443, "/"};
  EXPECT_NE(web_request(usual, notice, "").find("Host: example.org\r\n"), std::string::npos);
  EXPECT_EQ(web_request(usual, notice, "").find("Authorization"), std::string::npos);
}

}  // namespace
}  // namespace score::head
