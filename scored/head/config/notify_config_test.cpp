#include "scored/head/config/notify_config.hpp"

#include "scored/head/config/config.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <unistd.h>

namespace score::head {
namespace {

Result<HeadConfig> read(const std::string& lines) {
  return parse_config("[head]\nnodes = \"a\"\n" + lines, "x.toml");
}

std::string notify_problem(const std::string& lines) {
  const auto config = read(lines);
  return config ? "" : config.error().context();
}

TEST(NotifyConfig, SendsNothingByDefault) {
  const auto config = read("");
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->notify.has_mail());
  EXPECT_TRUE(config->notify.webhooks.empty());
  EXPECT_TRUE(notify_warnings(config->notify).empty());
}

TEST(NotifyConfig, ReadsMailAndWebhooks) {
  const auto config = read(R"(
    [notify]
    sendmail = "/usr/sbin/sendmail"
    from = "scored@example.org"
    timeout = "5s"
    [[notify.webhook]]
    url = "https://hooks.example.org:8443/a?b=c"
    events = ["fail", "array_tasks", "node_down"]
    token_file = "/etc/scored/token"
    ca_file = "/etc/scored/ca.pem"
    [[notify.webhook]]
    url = "http://[::1]:80"
  )");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_TRUE(config->notify.has_mail());
  EXPECT_EQ(config->notify.timeout, 5s);
  ASSERT_EQ(config->notify.webhooks.size(), 2U);
  const Webhook& first = config->notify.webhooks[0];
  EXPECT_EQ(first.address, (WebAddress{true, "hooks.example.org", 8443, "/a?b=c"}));
  EXPECT_TRUE(first.choice.kinds.has(NoticeKind::Fail) && first.choice.array_tasks);
  EXPECT_FALSE(first.choice.kinds.has(NoticeKind::End));
  const Webhook& second = config->notify.webhooks[1];
  EXPECT_EQ(second.address, (WebAddress{false, "::1", 80, "/"}));
  EXPECT_TRUE(second.choice.kinds.has(NoticeKind::End));
}

TEST(NotifyConfig, RefusesWhatCannotWork) {
  const std::string hook = "[[notify.webhook]]\n";
  for (const auto& [lines, key] : std::vector<std::pair<std::string, std::string>>{
           {"[notify]\nsendmail = \"sendmail\"", "absolute path"},
           {"[notify]\nsendmail = \"/a\"\ncommand = \"/b\"", "not both"},
           {"[notify]\nfrom = \"a b\"", "from"},
           {"[notify]\ntimeout = \"0s\"", "timeout"},
           {"[notify]\nmail = true", "mail"},
           {hook, "url"},
           {hook + "url = \"https://a\"\nevents = []", "at least one"},
           {hook + "url = \"https://a\"\nevents = [\"ended\"]", "unknown event 'ended'"},
           {hook + "url = \"http://127.0.0.1/\"\nca_file = \"/x\"", "not https"},
           {hook + "url = \"http://example.org/\"", "use https"}}) {
    EXPECT_NE(notify_problem(lines).find(key), std::string::npos) << lines << notify_problem(lines);
  }
  std::string many;
  for (std::size_t i = 0; i <= kMaxWebhooks; ++i) many += hook + "url = \"https://a/\"\n";
  EXPECT_NE(notify_problem(many).find("webhooks"), std::string::npos);
}

TEST(WebAddress, RefusesWhatIsNoAddress) {
  for (const char* bad :
       {"", "https://", "ftp://a/", "https://a:0/", "https://a:99999/", "https://a:b/",
        "https://user:pw@a/", "https://a b/", "https://a/ x", "https://a/\r\nX: y", "https://[::1",
        "https://[a]/", "https://-a/", "https://a/#x", "HTTPS://a/", "http://127.0.0.1.evil.org/",
        "http://localhost.evil.org/", "https://a]/", "https://:443/"}) {
    EXPECT_FALSE(parse_web_address(bad)) << bad;
  }
  EXPECT_TRUE(parse_web_address("http://127.0.0.2:8080/x"));
  EXPECT_TRUE(parse_web_address("http://localhost"));
  EXPECT_EQ(parse_web_address("https://a?x")->target, "/?x");
}

TEST(WebAddress, SurvivesRandomBytesAndTruncation) {
  std::mt19937 random(7);
  const std::string good = "https://[2001:db8::1]:8443/a/b?c=d";
  for (std::size_t length = 0; length <= good.size(); ++length) {
    (void)parse_web_address(good.substr(0, length));
  }
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (unsigned i = 0; i <= random() % 4; ++i) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    const auto address = parse_web_address(text);
    if (!address) continue;
    EXPECT_EQ(address->target.find_first_of("\r\n "), std::string::npos);
    EXPECT_EQ(address->host.find_first_of("\r\n /@"), std::string::npos);
    EXPECT_NE(address->port, 0);
  }
}

TEST(NotifyWarnings, NameMissingProgramsAndOpenTokens) {
  const std::string token =
      (std::filesystem::temp_directory_path() / ("token-" + std::to_string(::getpid()))).string();
  std::ofstream(token) << "0123456789abcdef\n";
  std::filesystem::permissions(token, std::filesystem::perms(0644));
  NotifyConfig config;
  config.sendmail = "/no/such/sendmail";
  config.webhooks.resize(1);
  config.webhooks[0].url = "https://a/";
  config.webhooks[0].token_file = token;
  config.webhooks[0].ca_file = "/no/such/ca";
  const auto warnings = notify_warnings(config);
  ASSERT_EQ(warnings.size(), 3U);
  EXPECT_NE(warnings[0].find("/no/such/sendmail: No such file"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[1].find("chmod 600"), std::string::npos) << warnings[1];
  EXPECT_NE(warnings[2].find("/no/such/ca"), std::string::npos) << warnings[2];
  std::filesystem::permissions(token, std::filesystem::perms(0600));
  config.sendmail = "/bin/sh";
  config.webhooks[0].ca_file.clear();
  EXPECT_TRUE(notify_warnings(config).empty());
  std::filesystem::remove(token);
}

}  // namespace
}  // namespace score::head
