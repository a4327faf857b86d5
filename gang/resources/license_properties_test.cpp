// No sequence of events, restarts of the head included, makes jobs hold more licenses than there
// are, or leaves licenses with no job (rapidcheck).
#include "tests/support/gang/cluster_bench.hpp"

#include <rapidcheck.h>

#include <memory>

namespace score::gang {
namespace {

constexpr std::uint32_t kLicensedNodes = 3;
const std::vector<base::License> kTotals = {{"a", 3}, {"b", 1}};

struct LicensedRun {
  bool release_suspended = false;
  std::unique_ptr<Bench> b = std::make_unique<Bench>();

  void set_licenses() { b->take(b->cluster.set_licenses(kTotals, release_suspended, b->now)); }

  void begin() {
    set_licenses();
    b->add_nodes(kLicensedNodes, 2);
  }

  // Continues with a head that knows only what is stored.
  void restart() {
    auto next = std::make_unique<Bench>();
    next->now = b->now + 1s;
    next->infos = b->infos;
    next->last_job = b->last_job;
    next->cluster.set_incarnation(Epoch{next->last_job + 1});
    for (const auto& [id, info] : next->infos) {
      EXPECT_TRUE(next->cluster.add_node(id, info.name));
    }
    std::map<NodeId, std::vector<base::AttemptReport>> attempts;
    std::vector<RecoveredJob> jobs;
    for (const JobId id : b->cluster.jobs()) {
      const JobView v = b->view(id);
      if (base::is_final(v.state)) continue;
      RecoveredJob r;
      r.id = v.id;
      r.user = v.user;
      r.request = v.request;
      r.state = v.state;
      r.attempt = v.attempt;
      r.scheduled = v.scheduled;
      r.restarts = v.restarts;
      r.ending = v.ending;
      r.exit_code = v.exit_code;
      if (v.state != JobState::Pending) {
        r.nodes = v.nodes;
        r.cores = v.cores;
        r.tasks_on_node = v.tasks_on_node;
        r.started = v.started;
        for (const NodeId node : v.nodes) {
          attempts[node].push_back({v.attempt, base::AttemptPhase::Running, {}, {}});
        }
      }
      jobs.push_back(std::move(r));
    }
    b = std::move(next);
    set_licenses();
    b->take(b->cluster.recover(jobs, b->now));
    for (const auto& [id, info] : b->infos) b->connect(id, attempts[id]);
    b->pass(10ms);
  }

  void event() {
    const JobId job{*rc::gen::inRange<std::uint64_t>(1, b->last_job + 2)};
    const NodeId node{*rc::gen::inRange(0U, kLicensedNodes)};
    const auto view = b->cluster.job(job, b->now);
    const auto maybe = [this](const base::Result<Actions>& actions) {
      if (actions) b->take(*actions);
    };
    switch (*rc::gen::inRange(0, 14)) {
      case 0:
        return maybe(b->cluster.cancel(job, EndCause::User, b->now));
      case 1:
      case 2:
        return maybe(b->cluster.suspend(job, b->now));
      case 3:
        return maybe(b->cluster.resume(job, b->now));
      case 4:
        if (view && view->state == JobState::Running) b->finish(job);
        return;
      case 5:
        return b->take(b->cluster.node_disconnected(node, b->now));
      case 6:
        return b->connect(node);
      case 7:
        return maybe(b->cluster.hold(job, b->now));
      case 8:
        return maybe(b->cluster.release(job, b->now));
      case 9:
        return maybe(b->cluster.set_priority(job, *rc::gen::inRange(-2, 3), b->now));
      case 10:
        return restart();
      default:
        b->submit(request());
    }
  }

  static base::ResourceRequest request() {
    base::ResourceRequest r = Bench::on_nodes(*rc::gen::inRange(1U, kLicensedNodes + 1));
    if (const auto a = *rc::gen::inRange(0U, 4U); a > 0) r.licenses.push_back({"a", a});
    if (*rc::gen::inRange(0, 3) == 0) r.licenses.push_back({"b", 1});
    r.requeue = *rc::gen::element(base::Requeue::No, base::Requeue::Yes);
    return r;
  }

  void check() const {
    std::map<std::string, std::uint64_t> least, most;
    for (const JobId id : b->cluster.jobs()) {
      const JobView v = b->view(id);
      const bool runs = v.state == JobState::Running || v.state == JobState::Launching;
      const bool may_hold = runs || v.state == JobState::Completing ||
                            (v.state == JobState::Suspended && !release_suspended);
      for (const base::License& one : v.request.licenses) {
        if (runs) least[one.name] += one.count;
        if (may_hold) most[one.name] += one.count;
      }
    }
    for (const auto& [name, count] : b->cluster.licenses().all()) {
      RC_ASSERT(count.used <= count.total);
      RC_ASSERT(count.used >= least[name]);
      RC_ASSERT(count.used <= most[name]);
    }
  }
};

TEST(LicenseProperties, NeverMoreThanThereAreAndNoneLost) {
  const bool ok = rc::check([] {
    LicensedRun run;
    run.release_suspended = *rc::gen::arbitrary<bool>();
    run.begin();
    const int events = *rc::gen::inRange(1, 60);
    for (int i = 0; i < events; ++i) {
      run.event();
      run.check();
      run.b->pass(*rc::gen::inRange(0, 300) * 1ms);
      run.check();
    }
    Bench& b = *run.b;
    for (std::uint32_t n = 0; n < kLicensedNodes; ++n) b.connect(NodeId{n});
    for (const JobId job : b.cluster.jobs()) {
      if (!base::is_final(b.state(job))) b.cancel(job);
    }
    b.pass(20s);
    for (const auto& [name, count] : b.cluster.licenses().all()) RC_ASSERT(count.used == 0);
    RC_ASSERT(!testing::Test::HasFailure());
  });
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace score::gang
