// These properties hold for every sequence of events (rapidcheck).
#include "tests/support/gang/cluster_bench.hpp"

#include <rapidcheck.h>

namespace score::gang {
namespace {

constexpr std::uint32_t kNodes = 5;

base::ResourceRequest any_request() {
  base::ResourceRequest r;
  r.nodes = *rc::gen::inRange(0U, kNodes + 1);
  r.tasks = r.nodes == 0 ? *rc::gen::inRange(1U, 9U) : 0;
  r.cpus_per_task = *rc::gen::inRange(1U, 3U);
  r.tasks_per_node = r.nodes > 0 ? *rc::gen::inRange(0U, 6U) : 0;  // of two cores
  r.own_cores = *rc::gen::inRange(0, 4) == 0;
  r.memory_per_node = base::Bytes{*rc::gen::inRange<std::uint64_t>(0, 5)};
  r.scratch = base::Bytes{*rc::gen::inRange<std::uint64_t>(0, 13) / 2};
  r.queue = *rc::gen::elementOf(std::vector<base::Queue>{base::Queue::Normal, base::Queue::Normal,
                                                         base::Queue::High, base::Queue::Exclusive,
                                                         base::Queue::Urgent});
  r.weight = *rc::gen::inRange(1U, 6U);
  r.no_fill = *rc::gen::inRange(0, 4) == 0;
  if (*rc::gen::inRange(0, 3) == 0) {
    r.generic = {{*rc::gen::element<std::string>("gpu", "part"), *rc::gen::inRange(1U, 3U),
                  base::Bytes{*rc::gen::inRange<std::uint64_t>(0, 5)}}};
  }
  if (*rc::gen::inRange(0, 3) == 0) {
    r.switches = *rc::gen::inRange(1U, 3U);
    r.switches_wait = *rc::gen::inRange(0, 3) * 1s;
  }
  if (*rc::gen::inRange(0, 4) == 0) r.features = {*rc::gen::element<std::string>("a", "b", "a|b")};
  return r;
}

// A unit of "gpu" has one job, and units of "part" are shared. The invariants count them.
void give_units(Bench& b) {
  for (std::uint32_t n = 0; n + 1 < kNodes; ++n) {
    base::NodeInfo& info = b.infos[NodeId{n}];
    info.generic = {{"gpu", 2, base::Bytes{4}}, {"part", 1 + n % 2, base::Bytes{4}, true}};
    info.features = {n % 2 == 0 ? "a" : "b"};
    info.scratch = base::Bytes{5};
    b.connect(NodeId{n});
  }
}

// Jobs with the same unit must never be in turn at the same time.
void expect_units_have_one_job(const Bench& b) {
  for (const auto& [node, table] : b.timetables) {
    for (const base::Segment& segment : table.segments) {
      std::set<std::pair<std::string, std::uint32_t>> taken;
      for (const AttemptId attempt : segment.jobs) {
        const auto view = b.cluster.job(base::job_of(attempt), b.now);
        if (!view || view->attempt != attempt || view->state != JobState::Running) continue;
        const auto member = std::ranges::find(view->nodes, node) - view->nodes.begin();
        if (static_cast<std::size_t>(member) >= view->units.size()) continue;
        for (const base::GenericShare& share : view->units[static_cast<std::size_t>(member)]) {
          for (const std::uint32_t index : share.indices) {
            RC_ASSERT(taken.emplace(share.name, index).second);
          }
        }
      }
    }
  }
}

// The last node has no switch.
Topology two_switches(const Bench& b) {
  std::vector<Switch> switches = {{"a", {}, {}}, {"b", {}, {}}};
  for (std::uint32_t n = 0; n + 1 < kNodes; ++n) {
    switches[n % 2].nodes.push_back(b.infos.at(NodeId{n}).name);
  }
  return *Topology::make(switches);
}

JobId any_job(const Bench& b) {
  return JobId{*rc::gen::inRange<std::uint64_t>(1, b.last_job + 2)};
}

void any_event(Bench& b) {
  const NodeId node{*rc::gen::inRange(0U, kNodes)};
  const JobId job = any_job(b);
  const auto view = b.cluster.job(job, b.now);
  const auto maybe = [&b](const base::Result<Actions>& actions) {
    if (actions) b.take(*actions);
  };
  switch (*rc::gen::inRange(0, 18)) {
    case 0:
    case 1:
    case 2: {
      const auto request = any_request();
      const auto plan = b.cluster.plan(request);
      EXPECT_EQ(plan.has_value(), b.cluster.check(request).has_value());
      if (!plan) return;
      const JobView made = b.view(b.submit(request));
      EXPECT_EQ(plan->state == JobState::Pending, made.nodes.empty());
      EXPECT_EQ(plan->nodes, made.nodes);
      EXPECT_EQ(plan->tasks_on_node, made.tasks_on_node);
      return;
    }
    case 3:
      return maybe(b.cluster.cancel(job, EndCause::User, b.now));
    case 4:
      return maybe(b.cluster.suspend(job, b.now));
    case 5:
      return maybe(b.cluster.resume(job, b.now));
    case 6:
      return maybe(b.cluster.set_weight(job, *rc::gen::inRange(1U, 6U), b.now));
    case 7:
      if (view && view->state == JobState::Running) b.finish(job, *rc::gen::inRange(0, 3));
      return;
    case 8:
      if (view) b.say(node, base::TaskEnded{view->attempt, {base::Rank{0}, 1, 0}});
      return;
    case 9:
      if (view) b.say(node, base::Refused{view->attempt, 127, "no"});
      return;
    case 10:
      return b.take(b.cluster.node_disconnected(node, b.now));
    case 11:
      return b.connect(node);
    case 12:
      return maybe(b.cluster.drain(node, "why not", b.now));
    case 13:
      return maybe(b.cluster.set(base::Setting::Fill, *rc::gen::arbitrary<bool>(), b.now));
    case 14:
      return b.take(b.cluster.set_shares_channel(job, *rc::gen::arbitrary<bool>(), b.now));
    case 15:
      return maybe(b.cluster.remove_node(node, b.now));
    case 16:
      (void)b.cluster.add_node(node, b.infos.at(node).name);  // it may be there already
      return;
    default:
      return maybe(b.cluster.resume_node(node, b.now));
  }
}

// Attempts that may fill must take turns on the node, with the consent of user and cluster.
void expect_fill_is_allowed(const Bench& b) {
  for (const auto& [node, table] : b.timetables) {
    RC_ASSERT(std::ranges::is_sorted(table.fill));
    if (!table.fill.empty()) RC_ASSERT(table.segments.size() > 1);
    for (const AttemptId attempt : table.fill) {
      RC_ASSERT(std::ranges::binary_search(table.managed, attempt));
      const auto view = b.cluster.job(base::job_of(attempt), b.now);
      RC_ASSERT(view && !view->request.no_fill);
      RC_ASSERT(view->request.queue != base::Queue::Exclusive);
    }
  }
}

TEST(Properties, InvariantsHoldAndEveryJobEndsOnce) {
  const bool ok = rc::check([] {
    Bench b;
    b.add_nodes(kNodes, 2, base::Bytes{8});
    give_units(b);
    if (*rc::gen::arbitrary<bool>()) b.take(b.cluster.set_topology(two_switches(b), b.now));
    std::map<JobId, JobState> ended;
    const int events = *rc::gen::inRange(1, 60);
    for (int i = 0; i < events; ++i) {
      any_event(b);  // Bench checks the invariants after every call
      b.pass(*rc::gen::inRange(0, 300) * 1ms);
      expect_fill_is_allowed(b);
      expect_units_have_one_job(b);
      for (const JobId job : b.cluster.jobs()) {
        const JobState state = b.state(job);
        if (ended.contains(job)) RC_ASSERT(ended[job] == state);
        if (base::is_final(state)) ended[job] = state;
      }
    }
    for (std::uint32_t n = 0; n < kNodes; ++n) {
      (void)b.cluster.add_node(NodeId{n}, b.infos.at(NodeId{n}).name);
      b.connect(NodeId{n});
      b.expect_ok(b.cluster.resume_node(NodeId{n}, b.now));
    }
    for (const JobId job : b.cluster.jobs()) {
      if (!base::is_final(b.state(job))) b.cancel(job);
    }
    b.pass(20s);
    for (const JobId job : b.cluster.jobs()) RC_ASSERT(base::is_final(b.state(job)));
    for (std::uint32_t n = 0; n < kNodes; ++n) {
      RC_ASSERT(b.cluster.node(NodeId{n})->memory_reserved == base::Bytes{0});
      RC_ASSERT(b.cluster.node(NodeId{n})->scratch_reserved == base::Bytes{0});
    }
    RC_ASSERT(!testing::Test::HasFailure());
  });
  EXPECT_TRUE(ok);
}

// Overlapping gangs have any weights, each on all nodes. At every millisecond exactly one runs, the
// same on all nodes, and each gets its share within a cycle.
TEST(Properties, GangsRunTogetherAndSharesFollowWeights) {
  const bool ok = rc::check([] {
    Bench b;
    b.add_nodes(2);
    std::map<JobId, std::uint32_t> weights;
    std::uint32_t sum = 0;
    const int count = *rc::gen::inRange(1, 6);
    for (int i = 0; i < count; ++i) {
      base::ResourceRequest r = Bench::on_nodes(2);
      r.weight = *rc::gen::inRange(1U, 5U);
      sum += r.weight;
      weights[b.submit(r)] = r.weight;
      b.pass(*rc::gen::inRange(0, 400) * 1ms);
    }
    b.pass(2s);
    const Duration cycle = std::max(b.timetables.at(NodeId{0}).cycle, Duration{100ms});
    std::map<JobId, int> ran;
    const int steps = static_cast<int>(cycle / 10ms);
    for (int i = 0; i < steps; ++i) {
      const TimePoint t = b.now + i * 10ms;
      int at_once = 0;
      for (const auto& [job, weight] : weights) {
        const bool here = b.runs(NodeId{0}, job, t);
        RC_ASSERT(here == b.runs(NodeId{1}, job, t));
        at_once += here;
        ran[job] += here;
      }
      RC_ASSERT(at_once == 1);
    }
    for (const auto& [job, weight] : weights) {
      const double share = static_cast<double>(ran[job]) / steps;
      RC_ASSERT(std::abs(share - static_cast<double>(weight) / sum) < 1e-6);
    }
  });
  EXPECT_TRUE(ok);
}

// In any stream of other jobs, a job gets at least half of the share of its weight.
TEST(Properties, ChurnStarvesNoJob) {
  const bool ok = rc::check([] {
    Bench b;
    b.add_nodes(1);
    const JobId steady = b.submit(Bench::on_nodes(1));
    const JobId other = b.submit(Bench::on_nodes(1));
    b.pass(1s);
    const Duration before = b.view(steady).scheduled;
    std::vector<JobId> passing;
    for (int i = 0; i < 40; ++i) {
      passing.push_back(b.submit(Bench::on_nodes(1)));
      b.pass(*rc::gen::inRange(30, 250) * 1ms);
      if (b.state(passing.back()) == JobState::Running) b.finish(passing.back());
    }
    const Duration elapsed = b.now - TimePoint{1h} - 1s;
    RC_ASSERT(b.view(steady).scheduled - before > elapsed / 6);
    RC_ASSERT(b.view(other).scheduled > elapsed / 6);
  });
  EXPECT_TRUE(ok);
}

// Memory is the limit, not the number of jobs. Weights are within the slices of one cycle.
TEST(Properties, NoSequenceKeepsAFittingJobOut) {
  const bool ok = rc::check([] {
    ClusterConfig config;
    set_setting(config, base::Setting::Slots, base::rule_of(base::Setting::Slots).initial);
    config.long_limit = ClusterConfig::kDefaultLongLimit;
    config.long_shared = config.long_early = 1h;
    config.young_time = 2s;
    Bench b(config);
    b.add_nodes(kNodes, 2);
    std::vector<JobId> jobs;
    const int events = *rc::gen::inRange(1, 30);
    for (int i = 0; i < events; ++i) {
      if (!jobs.empty() && *rc::gen::inRange(0, 5) == 0) {
        const auto at = *rc::gen::inRange<std::size_t>(0, jobs.size());
        b.finish(jobs[at]);
        jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(at));
      }
      auto request = Bench::on_nodes(*rc::gen::inRange(1U, kNodes + 1), *rc::gen::inRange(1U, 3U));
      request.scheduled_limit =
          *rc::gen::elementOf(std::vector<Duration>{0s, 1min, 5min, 10min, 1h});
      request.weight = *rc::gen::elementOf(std::vector<std::uint32_t>{50, 100, 200});
      const JobId job = b.submit(request);
      RC_ASSERT(b.state(job) == JobState::Running);
      b.pass(10ms);
      b.pass(2 * b.cluster.matrix().cycle);
      RC_ASSERT(b.view(job).scheduled > 0s);
      jobs.push_back(job);
    }
    RC_ASSERT(!testing::Test::HasFailure());
  });
  EXPECT_TRUE(ok);
}

// Every class of jobs has its share. Jobs that need all nodes have a slice in each cycle; the young
// ones together have at least half of the slices, and the older ones a quarter, whatever their
// weights and limits are. A limit over long_shared lets long jobs run in order, with a greater
// weight for the first.
TEST(Properties, EveryClassHasItsLeastShare) {
  const bool ok = rc::check([] {
    ClusterConfig config;
    set_setting(config, base::Setting::Slots, base::rule_of(base::Setting::Slots).initial);
    config.long_limit = ClusterConfig::kDefaultLongLimit;
    config.long_shared = config.long_early = 1h;
    config.young_time = 500ms;
    Bench b(config);
    b.add_nodes(2);
    const auto add_some = [&] {
      const int count = *rc::gen::inRange(1, 8);
      for (int i = 0; i < count; ++i) {
        auto request = Bench::on_nodes(2);
        request.scheduled_limit = *rc::gen::elementOf(std::vector<Duration>{0s, 1min, 10min, 2h});
        request.weight = *rc::gen::inRange(50U, 201U);
        request.equal_share = *rc::gen::arbitrary<bool>();
        b.submit(request);
      }
    };
    add_some();
    b.pass(5min);  // these are old now
    add_some();
    b.pass(200ms);
    double young = 0;
    double old = 0;
    for (const JobId job : b.cluster.jobs()) {
      const JobView view = b.view(job);
      if (view.state != JobState::Running) continue;
      RC_ASSERT(view.share > 0);
      (view.scheduled < config.young_time ? young : old) += view.share;
    }
    constexpr double kRounded = 0.05;  // each job has a whole slice of at most 256
    if (young > 0 && old > 0) {
      RC_ASSERT(young > 0.5 - kRounded);
      RC_ASSERT(old > 0.25 - kRounded);
    }
    RC_ASSERT(!testing::Test::HasFailure());
  });
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace score::gang
