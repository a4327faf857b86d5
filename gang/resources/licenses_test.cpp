#include "gang/resources/licenses.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using base::JobId;
using Counts = std::map<std::string, Licenses::Count>;

Job holder(std::uint64_t id, std::vector<base::License> wanted) {
  Job job;
  job.id = JobId{id};
  job.wait.number = id;
  job.wait.job = job.id;
  job.request.licenses = std::move(wanted);
  return job;
}

std::string refusal_of(const Licenses& licenses, const base::ResourceRequest& request) {
  const auto checked = licenses.check(request);
  return checked ? "" : checked.error().context();
}

TEST(Licenses, CountsWhatJobsHold) {
  Licenses licenses;
  licenses.set({{"a", 3}, {"b", 1}}, false);
  const Job first = holder(1, {{"a", 2}, {"b", 1}});
  const Job second = holder(2, {{"a", 2}});
  const Job third = holder(3, {{"a", 1}});
  licenses.take(first);
  licenses.take(first);  // counted once
  EXPECT_EQ(licenses.all(), (Counts{{"a", {3, 2}}, {"b", {1, 1}}}));
  EXPECT_FALSE(licenses.has_room(second));
  EXPECT_TRUE(licenses.has_room(third));
  EXPECT_EQ(licenses.why_short(second),
            std::vector<std::string>{"license a: needs 2, 1 of 3 free"});
  EXPECT_TRUE(licenses.check());
  licenses.give_back(first.id);
  licenses.give_back(first.id);
  EXPECT_TRUE(licenses.has_room(second));
  EXPECT_EQ(licenses.all(), (Counts{{"a", {3, 0}}, {"b", {1, 0}}}));
}

TEST(Licenses, RefusesWhatCanNeverBeGranted) {
  Licenses licenses;
  base::ResourceRequest request;
  request.licenses = {{"c", 1}};
  EXPECT_EQ(refusal_of(licenses, request), "no license 'c': this cluster has no licenses");
  licenses.set({{"a", 3}, {"b", 1}}, false);
  EXPECT_EQ(refusal_of(licenses, request), "no license 'c': there are a, b");
  request.licenses = {{"a", 4}};
  EXPECT_EQ(refusal_of(licenses, request), "requested 4 of license a; the cluster has 3");
  request.licenses = {{"a", 3}};
  EXPECT_EQ(refusal_of(licenses, request), "");
  request.overlay = true;
  EXPECT_EQ(refusal_of(licenses, request), "a job that takes no cores gets no licenses");
  request.inside = JobId{1};
  EXPECT_NE(refusal_of(licenses, request).find("a step uses the licenses of its job"),
            std::string::npos);
}

TEST(Licenses, FirstWaitingJobIsNotPassed) {
  Licenses licenses;
  licenses.set({{"a", 3}, {"b", 3}}, false);
  licenses.take(holder(1, {{"a", 1}}));
  const Job many = holder(2, {{"a", 3}});
  const Job few = holder(3, {{"a", 1}});
  const Job other = holder(4, {{"b", 1}});
  EXPECT_TRUE(licenses.has_room(few));
  licenses.await(many);
  EXPECT_FALSE(licenses.has_room(few));
  EXPECT_EQ(licenses.why_short(few),
            std::vector<std::string>{"license a: 3 kept for job 2, which is ahead in the queue"});
  EXPECT_TRUE(licenses.has_room(other));
  licenses.give_back(JobId{1});
  EXPECT_TRUE(licenses.has_room(many));
  EXPECT_TRUE(licenses.forget(many.id));
  EXPECT_FALSE(licenses.forget(many.id));
  EXPECT_TRUE(licenses.has_room(few));
}

TEST(Licenses, SuspendedJobMayGiveThemBack) {
  Licenses licenses;
  licenses.set({{"a", 2}}, false);
  const Job job = holder(1, {{"a", 2}});
  const Job other = holder(2, {{"a", 1}});
  licenses.take(job);
  EXPECT_FALSE(licenses.suspended(job));
  licenses.set({{"a", 2}}, true);
  EXPECT_TRUE(licenses.suspended(job));
  EXPECT_FALSE(licenses.suspended(job));
  EXPECT_TRUE(licenses.check_resume(job));
  licenses.take(other);
  EXPECT_EQ(licenses.check_resume(job).error().context(),
            "job 1 gave back its licenses when it was suspended: it needs 2 of a, and 1 is free; "
            "try again later");
  licenses.give_back(other.id);
  licenses.take(job);
  EXPECT_EQ(licenses.all(), (Counts{{"a", {2, 2}}}));
}

TEST(Licenses, SmallerTotalGrantsNoneUntilEnoughAreBack) {
  Licenses licenses;
  licenses.set({{"a", 3}, {"b", 1}}, false);
  licenses.take(holder(1, {{"a", 2}, {"b", 1}}));
  licenses.set({{"a", 1}}, false);
  EXPECT_EQ(licenses.all(), (Counts{{"a", {1, 2}}, {"b", {0, 1}}}));
  const Job job = holder(2, {{"a", 1}});
  EXPECT_FALSE(licenses.has_room(job));
  EXPECT_EQ(licenses.why_short(holder(3, {{"b", 1}})),
            std::vector<std::string>{"license b was removed from the configuration"});
  EXPECT_EQ(licenses.why_short(holder(4, {{"a", 2}})),
            std::vector<std::string>{"license a: needs 2, the cluster now has 1"});
  licenses.give_back(JobId{1});
  EXPECT_TRUE(licenses.has_room(job));
  EXPECT_EQ(licenses.all(), (Counts{{"a", {1, 0}}}));
}

}  // namespace
}  // namespace score::gang
