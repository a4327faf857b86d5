#include "scored/head/process/follower_page.hpp"

#include "monitor/http/http_message.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace score::head {
namespace {

KnownLeader leader(std::string name, std::string url) {
  return {true, std::move(name), std::move(url)};
}

TEST(FollowerPage, RedirectsToTheHeadInCharge) {
  const auto where = elsewhere_of(leader("b:7421", "https://b:8080"), "https://a:8080/");
  EXPECT_EQ(where.url, "https://b:8080");
  EXPECT_EQ(where.text, "the head at b:7421 is in charge");
}

TEST(FollowerPage, DoesNotRedirectToARemoteLoopbackAddress) {
  for (const char* url : {"http://127.0.0.1:8080", "http://[::1]:8080", "http://localhost:8080"}) {
    const auto where = elsewhere_of(leader("b:7421", url), "http://127.0.0.1:8080/");
    EXPECT_EQ(where.url, "") << url;
    EXPECT_NE(where.text.find(url), std::string::npos);
    const auto here = elsewhere_of(leader("127.0.0.1:7422", url), "http://127.0.0.1:1/");
    EXPECT_EQ(here.url, url) << "both heads are on this host";
  }
}

TEST(FollowerPage, DoesNotRedirectToItself) {
  const std::string proxy = "https://cluster.example.org";
  EXPECT_EQ(elsewhere_of(leader("b:7421", proxy), proxy + "/").url, "");
}

TEST(FollowerPage, ReportsMissingLeaderOrDashboard) {
  EXPECT_EQ(elsewhere_of({}, "").text,
            "no head of the cluster is in charge at the moment; try again");
  const auto where = elsewhere_of(leader("b:7421", ""), "http://a:1/");
  EXPECT_EQ(where.url, "");
  EXPECT_EQ(where.text, "the head at b:7421 is in charge; it serves no dashboard");
}

monitor::Response answer(std::string method, monitor::Endpoint endpoint, std::string url) {
  monitor::Request request;
  request.method = std::move(method);
  request.target = "/api/v1/trace?seconds=1";
  return monitor::make_elsewhere({std::move(url), "it is at <b> & not here"}, request, endpoint);
}

TEST(FollowerPage, RedirectsOnlyReadRequests) {
  using monitor::Endpoint;
  using monitor::http::field;
  const auto read = answer("GET", Endpoint::Trace, "https://b:8080");
  EXPECT_EQ(read.result_int(), 307U);
  EXPECT_EQ(read[field::location], "https://b:8080/api/v1/trace?seconds=1");
  const auto acts = answer("POST", Endpoint::Admin, "https://b:8080");
  EXPECT_EQ(acts.result_int(), 503U) << "a login there is needed first";
  EXPECT_EQ(acts.count(field::location), 0U);
  EXPECT_EQ(acts[field::retry_after], "5");
}

TEST(FollowerPage, PageContainsOnlyEscapedText) {
  const auto page = answer("GET", monitor::Endpoint::Page, "");
  EXPECT_EQ(page.result_int(), 503U);
  EXPECT_NE(page.body().find("it is at &lt;b> &amp; not here"), std::string::npos);
}

}  // namespace
}  // namespace score::head
