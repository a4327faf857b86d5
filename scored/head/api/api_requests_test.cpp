// Tests how a request of the API becomes the message of a command, and how faults are answered.
#include "scored/head/api/api_requests.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::head {
namespace {

constexpr WallTime kNow{std::chrono::seconds(1'800'000'000)};

monitor::ApiCall call_of(std::string method, const std::string& target, std::string body = {}) {
  monitor::ApiCall call;
  call.caller = {{UserId(1000), "alice"}, true, false};
  call.method = std::move(method);
  call.target = monitor::parse_target("/api/v1/" + target).value();
  call.body = std::move(body);
  return call;
}

template <class Request>
Request read(const monitor::ApiCall& call) {
  auto outcome = read_request(call, kNow);
  const auto* fault = std::get_if<ApiFault>(&outcome);
  EXPECT_EQ(fault, nullptr) << fault->fault.text;
  auto* request = fault != nullptr ? nullptr : std::get_if<Request>(&std::get<ApiRequest>(outcome));
  EXPECT_NE(request, nullptr) << "a different request";
  return request == nullptr ? Request() : *request;
}

int status_of(const monitor::ApiCall& call) {
  const auto outcome = read_request(call, kNow);
  const auto* fault = std::get_if<ApiFault>(&outcome);
  return fault == nullptr ? 200 : fault->status;
}

TEST(ApiRequests, ReadsEachKind) {
  EXPECT_EQ(read<OneJob>(call_of("GET", "jobs/7")).job, 7U);
  EXPECT_EQ(read<wire::CancelJob>(call_of("DELETE", "jobs/7")).job(), 7U);
  EXPECT_EQ(read<wire::ControlJob>(call_of("POST", "jobs/7/suspend")).what(),
            wire::ControlJob::SUSPEND);
  EXPECT_EQ(
      read<wire::SignalJob>(call_of("POST", "jobs/7/signal", R"({"signal":"USR1"})")).signal(),
      SIGUSR1);
  const auto output =
      read<OutputRequest>(call_of("GET", "jobs/7/output?stream=stderr&offset=12&follow=1"));
  EXPECT_EQ(output.stream, wire::STDERR);
  EXPECT_EQ(output.offset, 12U);
  EXPECT_TRUE(output.follows);
  EXPECT_EQ(read<ListedNodes>(call_of("GET", "nodes/node03")).node, "node03");
  read<wire::GetInfo>(call_of("GET", "cluster"));
  read<Description>(call_of("GET", "openapi.json"));
  EXPECT_EQ(read<wire::ControlJob>(call_of("POST", "jobs/7/requeue")).what(),
            wire::ControlJob::REQUEUE);
  EXPECT_EQ(read<JobEventsRequest>(call_of("GET", "jobs/7/events")).job, 7U);
  monitor::ApiCall again = call_of("GET", "jobs/7/events");
  EXPECT_EQ(read<JobEventsRequest>(again).after_event, 0);
  again.last_event_id = "1796035610977973823";
  EXPECT_EQ(read<JobEventsRequest>(again).after_event, 1'796'035'610'977'973'823);
  EXPECT_EQ(read<ProfileRequest>(call_of("GET", "jobs/7/profile")).job, 7U);
  read<ListedSettings>(call_of("GET", "settings"));
  read<wire::ListShares>(call_of("GET", "shares"));
  read<wire::ListReservations>(call_of("GET", "reservations"));
  const auto listed = read<ListedJobs>(call_of("GET", "jobs?user=all&state=running&limit=5"));
  EXPECT_EQ(listed.user, "all");
  EXPECT_EQ(listed.limit, 5U);
}

TEST(ApiRequests, ReadsTimesOfRecords) {
  const auto records = read<RecordsRequest>(call_of("GET", "accounting?since=2d&until=12.5"));
  EXPECT_EQ(records.since_wall_ns, (kNow - Duration(48h)).time_since_epoch().count());
  EXPECT_EQ(records.until_wall_ns, 12'500'000'000);
  EXPECT_FALSE(records.as_csv);
  EXPECT_TRUE(read<RecordsRequest>(call_of("GET", "accounting?format=csv")).as_csv);
  EXPECT_EQ(status_of(call_of("GET", "accounting?since=soon")), 400);
  EXPECT_EQ(status_of(call_of("GET", "accounting?format=xml")), 400);
}

TEST(ApiRequests, DryRunIsAPlan) {
  const std::string body = R"({"command":["a"],"directory":"/"})";
  const auto plan = read<wire::Plan>(call_of("POST", "jobs?dry_run=1", body));
  EXPECT_EQ(plan.submission().spec().directory(), "/");
  read<wire::Submit>(call_of("POST", "jobs?dry_run=0", body));
  EXPECT_EQ(status_of(call_of("POST", "jobs?dry_run=maybe", body)), 400);
}

TEST(ApiRequests, TagChangesWithWhatCanBeChanged) {
  wire::JobStatus job;
  job.set_job(7);
  const std::string before = etag_of(job);
  job.set_elapsed_ns(5);
  EXPECT_EQ(etag_of(job), before);
  EXPECT_TRUE(has_tag("\"x\", " + before, before));
  EXPECT_TRUE(has_tag("*", before));
  job.set_scheduled_limit_ns(5);
  EXPECT_FALSE(has_tag(before, etag_of(job)));
  EXPECT_EQ(changed_job(read<wire::ChangeJob>(call_of("PATCH", "jobs/7", R"({"time":60})"))), 7U);
  EXPECT_EQ(changed_job(OneJob{7}), 0U);
}

TEST(ApiRequests, RejectsWithTheRightStatus) {
  EXPECT_EQ(status_of(call_of("GET", "nothing")), 404);
  EXPECT_EQ(status_of(call_of("GET", "jobs/x")), 404);
  EXPECT_EQ(status_of(call_of("GET", "jobs/7/x")), 404);
  EXPECT_EQ(status_of(call_of("GET", "jobs/7/output/x")), 404);
  EXPECT_EQ(status_of(call_of("DELETE", "jobs")), 405);
  EXPECT_EQ(status_of(call_of("GET", "jobs/7/hold")), 405);
  EXPECT_EQ(status_of(call_of("POST", "nodes")), 405);
  EXPECT_EQ(status_of(call_of("GET", "jobs?limit=0")), 400);
  EXPECT_EQ(status_of(call_of("GET", "jobs?state=good")), 400);
  EXPECT_EQ(status_of(call_of("GET", "jobs?colour=red")), 400);
  EXPECT_EQ(status_of(call_of("GET", "jobs/7/output?offset=-1")), 400);
  EXPECT_EQ(status_of(call_of("POST", "jobs", "{}")), 422);
  EXPECT_EQ(status_of(call_of("PATCH", "jobs/7", "{}")), 422);
  EXPECT_EQ(status_of(call_of("POST", "jobs/7/events")), 405);
  EXPECT_EQ(status_of(call_of("POST", "jobs/7/profile")), 405);
  EXPECT_EQ(status_of(call_of("POST", "jobs/7/signal", R"({"signal":"LOUD"})")), 422);
  EXPECT_EQ(status_of(call_of("POST", "jobs/7/signal", "x")), 400);
}

TEST(ApiRequests, SameKeyOfSameUserGivesSameRequest) {
  auto call = call_of("POST", "jobs", R"({"command":["a"],"directory":"/"})");
  const auto without = read<wire::Submit>(call).request_id();
  EXPECT_NE(without, read<wire::Submit>(call).request_id());
  call.idempotency_key = "k";
  const auto first = read<wire::Submit>(call).request_id();
  EXPECT_EQ(first.size(), 16U);
  EXPECT_EQ(first, read<wire::Submit>(call).request_id());
  call.caller.who.user = UserId(1001);
  EXPECT_NE(first, read<wire::Submit>(call).request_id());
  call.idempotency_key = std::string(256, 'k');
  EXPECT_EQ(status_of(call), 400);
}

TEST(ApiRequests, TokenCannotMakeTokens) {
  auto call = call_of("POST", "tokens", R"({"name":"a","days":2,"scope":"read"})");
  const auto made = read<wire::ManageTokens>(call);
  EXPECT_TRUE(made.only_reads());
  EXPECT_EQ(made.lifetime_ns(), Duration(48h).count());
  call.caller.is_token = true;
  EXPECT_EQ(status_of(call), 403);
  EXPECT_EQ(status_of(call_of("POST", "tokens", R"({"name":"a","days":1e9})")), 422);
}

TEST(ApiRequests, FiltersJobs) {
  wire::JobStatus job;
  job.set_user(1000);
  job.set_user_name("alice");
  job.set_name("solve");
  const monitor::WebUser alice{UserId(1000), "alice"};
  ListedJobs listed;
  listed.user = "me";
  EXPECT_TRUE(matches(listed, job, alice));
  EXPECT_FALSE(matches(listed, job, {UserId(1001), "bob"}));
  listed.user = "alice";
  listed.name = "other";
  EXPECT_FALSE(matches(listed, job, alice));
}

TEST(ApiRequests, AnyBodyGivesARequestOrOneLine) {
  std::mt19937 random(3);
  for (const char* target : {"jobs", "jobs/7/signal", "tokens"}) {
    for (int i = 0; i < 5'000; ++i) {
      std::string body(random() % 40, ' ');
      for (char& c : body) c = static_cast<char>(random());
      const auto outcome = read_request(call_of("POST", target, body), kNow);
      const auto* fault = std::get_if<ApiFault>(&outcome);
      ASSERT_NE(fault, nullptr);
      EXPECT_EQ(fault->fault.text.find('\n'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace score::head
