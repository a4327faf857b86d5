// Tests reservations of nodes, and the expected starts of waiting jobs.
#include "tests/support/gang/cluster_bench.hpp"

namespace score::gang {
namespace {

struct ReservedBench : Bench {
  using Bench::Bench;

  static base::ResourceRequest lasting(std::uint32_t nodes, Duration wall_limit) {
    auto request = on_nodes(nodes);
    request.wall_limit = wall_limit;
    return request;
  }

  static base::ResourceRequest in(const std::string& reservation, std::uint32_t nodes = 1) {
    auto request = on_nodes(nodes);
    request.reservation = reservation;
    return request;
  }

  // Returns a reservation of the first `nodes` nodes.
  Reservation of(const std::string& name, std::uint32_t nodes, Duration from, Duration length) {
    Reservation r{name, {}, now + from, now + from + length, {}, {}};
    for (std::uint32_t id = 0; id < nodes; ++id) r.nodes.emplace_back(id);
    return r;
  }

  void reserve(std::vector<Reservation> all) {
    take(cluster.set_reservations(std::move(all), now));
  }

  [[nodiscard]] bool is_on(JobId job, std::uint32_t node) const {
    const auto nodes = view(job).nodes;
    return std::count(nodes.begin(), nodes.end(), NodeId{node}) == 1;
  }
};

TEST(Reservations, JobsThatMayReachOneWaitForIt) {
  ReservedBench b;
  b.add_nodes(2);
  b.reserve({b.of("m", 2, 10min, 1h)});
  const JobId brief = b.submit(ReservedBench::lasting(2, 5min));
  const JobId late = b.submit(ReservedBench::lasting(1, 11min));
  const JobId open = b.submit(ReservedBench::on_nodes(1));
  EXPECT_EQ(b.state(brief), JobState::Running);
  EXPECT_EQ(b.state(late), JobState::Pending);
  EXPECT_EQ(b.view(late).reasons.at(1),
            "reservation m begins in 10m, before a job with its time limit is sure to have ended: "
            "node[00-01]");
  EXPECT_EQ(b.view(open).reasons.at(1),
            "reservation m begins in 10m, before a job without a time limit is sure to have "
            "ended: node[00-01]");
  EXPECT_EQ(b.cluster.expected_start(open), b.now + 70min);
  b.finish(brief);
  b.pass(11min);
  EXPECT_EQ(b.state(late), JobState::Pending);
  EXPECT_EQ(b.view(open).reasons.at(1), "reserved (m): node[00-01]");
  EXPECT_EQ(b.cluster.node(NodeId{0})->reservation, "m");
  b.pass(1h);
  EXPECT_EQ(b.state(late), JobState::Running) << "the nodes come back by themselves";
  EXPECT_EQ(b.state(open), JobState::Running);
  EXPECT_EQ(b.cluster.node(NodeId{0})->reservation, "");
}

TEST(Reservations, AreForTheJobsOfTheirUsers) {
  ReservedBench b;
  b.add_nodes(2);
  Reservation course = b.of("course", 1, 10min, 1h);
  course.users = {UserId{1000}};
  const JobId early = b.submit(ReservedBench::in("course"));
  EXPECT_EQ(b.view(early).reasons.at(0), "reservation course has ended or was removed");
  b.reserve({course});
  EXPECT_EQ(b.view(early).reasons.at(0), "reservation course begins in 10m");
  const JobId other = b.submit(ReservedBench::on_nodes(1));
  EXPECT_TRUE(b.is_on(other, 1));
  b.pass(10min);
  EXPECT_TRUE(b.is_on(early, 0));
  const JobId wide = b.submit(ReservedBench::in("course", 2));
  EXPECT_EQ(b.state(wide), JobState::Pending);
  EXPECT_EQ(b.view(wide).reasons.at(1), "not in reservation course: node01");
  b.pass(1h);
  EXPECT_EQ(b.state(early), JobState::Running) << "the end of a reservation ends no job";
}

TEST(Reservations, EndRemainingJobsWhenTheyBegin) {
  ReservedBench b;
  b.add_nodes(2);
  const JobId open = b.submit(ReservedBench::on_nodes(1));
  const JobId limited = b.submit(ReservedBench::lasting(2, 1h));
  const Reservation m = b.of("m", 1, 30min, 1h);
  EXPECT_EQ(b.cluster.conflicting_jobs(m, b.now), (std::vector{open, limited}));
  EXPECT_EQ(b.cluster.conflicting_jobs(b.of("n", 1, 2h, 1h), b.now), std::vector{open});
  b.reserve({m});
  b.pass(31min);
  EXPECT_EQ(b.state(open), JobState::TimedOut);
  EXPECT_EQ(b.view(open).reasons.at(0), "reservation m has begun on node00");
  EXPECT_EQ(b.state(limited), JobState::TimedOut);
}

// A job may last longer than its limit of scheduled time promised, if it got fewer slices than
// expected.
TEST(Reservations, ApplyToJobsThatWereSuspended) {
  ReservedBench b(one_slot());
  b.add_nodes(1);
  b.reserve({b.of("m", 1, 10min, 1h)});
  auto request = ReservedBench::on_nodes(1);
  request.scheduled_limit = 5min;
  const JobId job = b.submit(request);
  b.expect_ok(b.cluster.suspend(job, b.now));
  b.pass(11min);
  EXPECT_EQ(b.state(job), JobState::TimedOut);
}

TEST(Reservations, RoomIsNotPromisedOnReservedNodes) {
  ReservedBench b(one_slot());
  b.add_nodes(2);
  b.reserve({b.of("m", 1, 10min, 1h)});
  const JobId wide = b.submit(ReservedBench::on_nodes(2));
  EXPECT_EQ(b.state(wide), JobState::Pending);
  const JobId open = b.submit(ReservedBench::on_nodes(1));
  EXPECT_TRUE(b.is_on(open, 1));
  const JobId brief = b.submit(ReservedBench::lasting(1, 5min));
  EXPECT_TRUE(b.is_on(brief, 0)) << "a shorter one of the same size may pass";
}

TEST(Reservations, ShorterJobOfSameSizeIsTried) {
  ReservedBench b(one_slot());
  b.add_nodes(1);
  const JobId first = b.submit(ReservedBench::on_nodes(1));
  const JobId open = b.submit(ReservedBench::on_nodes(1));
  const JobId brief = b.submit(ReservedBench::lasting(1, 5min));
  b.reserve({b.of("m", 1, 10min, 1h)});
  b.finish(first);
  EXPECT_EQ(b.state(open), JobState::Pending);
  EXPECT_EQ(b.state(brief), JobState::Running);
}

// ---- expected starts

TEST(ExpectedStart, FollowsFromTheTimeLimits) {
  ReservedBench b(one_slot());
  b.add_nodes(2);
  b.submit(ReservedBench::lasting(2, 10min));
  const JobId second = b.submit(ReservedBench::lasting(2, 5min));
  const JobId third = b.submit(ReservedBench::lasting(1, 5min));
  const TimePoint start = b.now;
  EXPECT_EQ(b.cluster.expected_start(second), start + 10min);
  EXPECT_EQ(b.cluster.expected_start(third), start + 15min);
  const auto plan = b.cluster.plan(ReservedBench::on_nodes(1));
  EXPECT_EQ(plan->expected_start, start + 15min);
  b.submit(ReservedBench::on_nodes(2));
  const auto behind = b.cluster.plan(ReservedBench::on_nodes(1));
  EXPECT_FALSE(behind->expected_start) << "the one ahead has no limit";
}

TEST(ExpectedStart, IsUnknownWithoutTimeLimit) {
  ReservedBench b(one_slot());
  b.add_nodes(1);
  const JobId first = b.submit(ReservedBench::on_nodes(1));
  const JobId second = b.submit(ReservedBench::on_nodes(1));
  EXPECT_FALSE(b.cluster.expected_start(second));
  EXPECT_FALSE(b.cluster.expected_start(first)) << "it runs";
  b.expect_ok(b.cluster.hold(second, b.now));
  EXPECT_FALSE(b.cluster.expected_start(second));
}

TEST(ExpectedStart, ScheduledTimeIncludesOtherTurns) {
  ClusterConfig config;
  config.max_slots = 2;
  ReservedBench b(config);
  b.add_nodes(1);
  auto request = ReservedBench::on_nodes(1);
  request.scheduled_limit = 10min;
  b.submit(request);
  request.scheduled_limit = 20min;
  b.submit(request);
  const TimePoint start = b.now;
  const JobId third = b.submit(request);
  EXPECT_EQ(b.cluster.expected_start(third), start + 20min);
}

}  // namespace
}  // namespace score::gang
