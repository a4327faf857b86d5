#include "tests/sim/world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace score::sim {

World::World(Options options) : options_(options), chance_(options.seed) {
  sites_.resize(options_.nodes);
  head_start();
  for (std::uint32_t i = 0; i < options_.nodes; ++i) build_site(i);
}

World::~World() = default;

void World::build_site(std::uint32_t index) {
  Site& site = sites_[index];
  site.link = std::make_unique<Link>(
      events_, chance_, options_.slow_messages ? Link::Pace::Usual : Link::Pace::Prompt,
      Link::Ends{[this, index](const Upward& m) { head_hears(index, m); },
                 [this, index](const Downward& m) { sites_[index].node->receive(m); },
                 [this, index] {
                   if (head_) head_does(head_->node_disconnected(NodeId{index}, head_now()));
                 },
                 [this, index] { sites_[index].node->on_disconnected(); }});
  base::NodeInfo info{fmt::format("node{:02}", index),
                      static_cast<std::uint32_t>(chance_.between(1, 4)),
                      base::Bytes{chance_.between(4, 16)}};
  info.generic = {{"gpu", 2}, {"part", 1 + index % 2, base::Bytes{4}, true}};
  info.scratch = base::Bytes{12};
  info.features = {index % 2 == 0 ? "even" : "odd"};
  SimNode::World world{events_,
                       chance_,
                       [this, index](Upward m) {
                         Site& s = sites_[index];
                         if (chance_.one_in(40) && std::holds_alternative<base::NodeToHead>(m)) {
                           s.said.push_back(m);
                           if (s.said.size() > 50) s.said.pop_front();
                         }
                         s.link->up(std::move(m));
                       },
                       [this](base::AttemptId a) { return behaviours_[base::job_of(a)]; },
                       [this](NodeId id) { changed_.insert(id.value()); },
                       options_.barriers,
                       options_.crowded ? std::max(1U, options_.nodes / 12) : 1U};
  site.node = std::make_unique<SimNode>(NodeId{index}, info, world);
  events_.after(chance_.between(0ns, 50ms), [this, index] { keep_connected(index); });
  events_.after(chance_.between(0ns, limits::kHeartbeatPeriod),
                [this, index] { keep_beating(index); });
}

void World::keep_connected(std::size_t index) {
  Site& site = sites_[index];
  if (!site.link->is_up() && site.reachable && head_ && site.node->daemon_runs()) {
    site.link->settle();
    site.link->connect();
    site.heard.clear();  // a connection is a protected stream, so old messages cannot be replayed
    site.node->on_connected();
  }
  events_.after(chance_.between(50ms, 500ms), [this, index] { keep_connected(index); });
}

void World::keep_beating(std::size_t index) {
  sites_[index].node->heartbeat();
  check_clock(index);
  events_.after(limits::kHeartbeatPeriod, [this, index] { keep_beating(index); });
}

void World::keep_checking_idle() {
  for (const JobId job : head_->jobs()) {
    check_idle(job);
    check_launch(job);
    check_high(job);
  }
  events_.after(100ms, [this] {
    if (!healing_) keep_checking_idle();
  });
}

void World::every(Duration mean, void (World::*what)()) {
  events_.after(chance_.between(0ns, 2 * mean), [this, mean, what] {
    if (healing_) return;
    (this->*what)();
    every(mean, what);
  });
}

Seen World::run() {
  every(options_.user_pause, &World::user_acts);
  every(500ms, &World::operate);
  if (!options_.crowded) every(1s, &World::reserve);
  if (!options_.faults) keep_checking_idle();
  if (options_.faults) {
    every(150ms, &World::misfortune);
    every(20ms, &World::duplicate);
  }
  while (seen_.events < options_.steps && events_.step()) check_event();
  heal();
  return seen_;
}

void World::step_until(TimePoint end) {
  bool over = false;
  events_.at(end, [&over] { over = true; });
  while (!over && events_.step()) check_event();
}

// Ends all faults. Then all living parts must agree on one state, and every accepted job must end
// once.
void World::heal() {
  healing_ = true;
  reserved_.clear();
  if (!head_) head_start();
  head_does(head_->set_reservations({}, head_now()));
  for (Site& site : sites_) {
    site.reachable = true;
    site.link->stall(0ns);
    if (!site.node->daemon_runs()) site.node->restart_daemon();
  }
  step_until(events_.now() + 20s);
  head_does(head_->set(base::Setting::Slots, 8, head_now()));
  for (std::uint32_t i = 0; i < sites_.size(); ++i) {
    head_does(head_->resume_node(NodeId{i}, head_now()));
  }
  for (const JobId job : head_->jobs()) {
    const auto view = head_->job(job, head_now());
    if (view->state == JobState::Pending && !view->request.reservation.empty()) {
      head_does(head_->cancel(job, gang::EndCause::User,
                              head_now()));  // otherwise it would wait for ever
      continue;
    }
    if (view->state == JobState::Pending) head_does(head_->release(job, head_now()));
    if (view->state == JobState::Suspended) head_does(head_->resume(job, head_now()));
  }
  // Jobs that wait for memory run one after the other, and each deadlock takes some seconds.
  for (int round = 0; round < 1000; ++round) {
    step_until(events_.now() + 1s);
    for (const JobId job : head_->jobs()) check_launch(job);
    for (const JobId job : head_->jobs()) {
      const auto view = head_->job(job, head_now());
      if (view->activity != gang::JobActivity::Deadlocked) continue;
      head_does(head_->cancel(job, gang::EndCause::Operator, head_now()));
    }
    bool all = true;
    for (const JobId job : head_->jobs()) all &= base::is_final(head_->job(job, head_now())->state);
    if (all) break;
  }
  step_until(events_.now() + 10s);  // the last ForgetTasks
  check_healed();
}

}  // namespace score::sim
