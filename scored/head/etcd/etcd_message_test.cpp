// The answers are those of etcd 3.4.23.
#include "scored/head/etcd/etcd_message.hpp"

#include <gtest/gtest.h>

namespace score::head::etcd {
namespace {

constexpr std::string_view kKey = "/scored/c/lease";
const std::string kHeader =
    R"("header":{"cluster_id":"324952591200643719","member_id":"3319814642761637952",)"
    R"("revision":"7","raft_term":"2"})";
const std::string kKvs =
    R"("kvs":[{"key":"L3Njb3JlZC9jL2xlYXNl","create_revision":"2","mod_revision":"5",)"
    R"("version":"1","value":"NCAx"}],"count":"1")";
constexpr std::uint64_t kCluster = 324952591200643719U;

TEST(EtcdMessage, ReadsTheKey) {
  const auto answer = parse_read("{" + kHeader + "," + kKvs + "}", kKey);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->cluster, kCluster);
  EXPECT_EQ(answer->found, (KeyState{5, "4 1"}));
}

TEST(EtcdMessage, AbsentKeyHasRevisionZero) {
  const auto answer = parse_read("{" + kHeader + "}", kKey);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->found, KeyState());
}

TEST(EtcdMessage, SuccessfulReplacementHasTheNewRevision) {
  const auto answer = parse_replaced("{" + kHeader +
                                         R"(,"succeeded":true,"responses":[{"response_put":)"
                                         R"({"header":{"revision":"7"}}}]})",
                                     kKey);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->stored_at, 7U);
}

TEST(EtcdMessage, FailedReplacementShowsTheKey) {
  const auto answer = parse_replaced("{" + kHeader +
                                         R"(,"responses":[{"response_range":{"header":)"
                                         R"({"revision":"7"},)" +
                                         kKvs + "}}]}",
                                     kKey);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_FALSE(answer->stored_at);
  EXPECT_EQ(answer->found, (KeyState{5, "4 1"}));
}

TEST(EtcdMessage, OtherAnswersAreMalformed) {
  const std::string other = R"("kvs":[{"key":"L3g=","mod_revision":"5","value":"NCAx"}])";
  const std::string unversioned = R"("kvs":[{"key":"L3Njb3JlZC9jL2xlYXNl","value":"NCAx"}])";
  const std::string negative = R"("kvs":[{"key":"L3Njb3JlZC9jL2xlYXNl","mod_revision":"-5"}])";
  for (const std::string& body :
       {std::string(), std::string("[]"), std::string("{}"), std::string(R"({"header":7})"),
        "{" + kHeader + "," + other + "}", "{" + kHeader + "," + unversioned + "}",
        "{" + kHeader + "," + negative + "}", "{" + kHeader + R"(,"kvs":7})",
        "{" + kHeader + "}" + std::string(kMaxAnswerBytes, ' ')}) {
    EXPECT_FALSE(parse_read(body, kKey)) << body.substr(0, 200);
  }
  for (const std::string rest : {"", R"(,"succeeded":true)", R"(,"succeeded":1,"responses":[{}])",
                                 R"(,"succeeded":true,"responses":[{"response_range":{}}])",
                                 R"(,"responses":[{"response_put":{}}])", R"(,"responses":[])"}) {
    EXPECT_FALSE(parse_replaced("{" + kHeader + rest + "}", kKey)) << rest;
  }
}

TEST(EtcdMessage, RequestsAreTheGateways) {
  EXPECT_EQ(format_read(kKey), R"({"key":"L3Njb3JlZC9jL2xlYXNl"})");
  EXPECT_EQ(format_replace(kKey, 5, "4 1"),
            R"({"compare":[{"key":"L3Njb3JlZC9jL2xlYXNl","target":"MOD","result":"EQUAL",)"
            R"("mod_revision":"5"}],"success":[{"request_put":{"key":"L3Njb3JlZC9jL2xlYXNl",)"
            R"("value":"NCAx"}}],"failure":[{"request_range":{"key":"L3Njb3JlZC9jL2xlYXNl"}}]})");
}

TEST(EtcdMessage, RefusalIsPrintable) {
  EXPECT_EQ(describe_refusal(503, R"({"error":"etcdserver: no leader","code":14})"),
            "etcdserver: no leader");
  EXPECT_EQ(describe_refusal(502, "<html>"), "HTTP status 502");
  EXPECT_EQ(describe_refusal(500, "{\"error\":\"\\u001b[2J\"}").find('\x1b'), std::string::npos);
}

TEST(EtcdMessage, Base64SurvivesBothWays) {
  for (const std::string text : {"", "f", "fo", "foo", "foob", "fooba", "foobar"}) {
    EXPECT_EQ(decode_base64(encode_base64(text)).value_or("?"), text);
  }
  EXPECT_EQ(encode_base64("foob"), "Zm9vYg==");
  for (const char* wrong : {"Z", "Zm9", "Zh==", "Zm9v====", "Zm9=Zm9v", "Zm9\n", "===="}) {
    EXPECT_FALSE(decode_base64(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace score::head::etcd
