#include "gang/schedule/batch_policy.hpp"

#include "tests/support/gang/schedule_bench.hpp"

namespace score::gang {
namespace {

constexpr TimePoint kNow{1h};

TEST(Profile, FindsFirstGapThatIsLongEnough) {
  Profile p;
  p.reset(kNow, 4);
  p.take(kNow, kNow + 10s, 3);
  p.take(kNow + 5s, kNow + 20s, 1);
  EXPECT_EQ(p.free_at(kNow), 1);
  EXPECT_EQ(p.free_at(kNow + 5s), 0);
  EXPECT_EQ(p.earliest(1, 5s), kNow);
  EXPECT_EQ(p.earliest(1, 6s), kNow + 10s);
  EXPECT_EQ(p.earliest(4, 1s), kNow + 20s);
}

struct BatchBench : ScheduleBench {
  explicit BatchBench(Placement placement) : ScheduleBench(4, 1, with(placement)) {}

  static ClusterConfig with(Placement placement) {
    ClusterConfig config;
    config.placement = placement;
    return config;
  }

  Job& add_job(std::uint32_t nodes, Duration limit) {
    base::ResourceRequest request = on_nodes(nodes);
    request.scheduled_limit = limit;
    Job& job = add(request);
    for (const JobId id : placer.place_waiting(step.now)) launch(tables.jobs.at(id));
    return job;
  }
};

TEST(Batch, FcfsLetsNoJobPass) {
  BatchBench b(Placement::Fcfs);
  b.add_job(2, 100s);
  EXPECT_FALSE(b.add_job(4, 10s).placed);
  EXPECT_FALSE(b.add_job(1, 10s).placed);
  EXPECT_TRUE(b.placer.check());
}

TEST(Batch, EasyLetsJobPassWithoutDelayOfFirst) {
  BatchBench b(Placement::Easy);
  b.add_job(2, 100s);
  EXPECT_FALSE(b.add_job(3, 10s).placed);
  EXPECT_TRUE(b.add_job(1, 100s).placed) << "it ends before the first could start";
  EXPECT_TRUE(b.add_job(1, 1000s).placed) << "the first does not need its node";
  EXPECT_FALSE(b.add_job(1, 1s).placed) << "no node is free";
  EXPECT_TRUE(b.placer.check());
}

TEST(Batch, ConservativeLetsNoJobDelayOthers) {
  BatchBench b(Placement::Conservative);
  b.add_job(3, 100s);
  EXPECT_FALSE(b.add_job(4, 10s).placed);  // from 100 s on
  EXPECT_FALSE(b.add_job(1, 200s).placed);
  EXPECT_TRUE(b.add_job(1, 100s).placed);
  EXPECT_TRUE(b.placer.check());
}

}  // namespace
}  // namespace score::gang
