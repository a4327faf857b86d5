// This file implements users, operators and faults.
#include "tests/sim/world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace score::sim {

// Two such jobs share at least some nodes, and with one core each nearly all of them.
base::ResourceRequest World::wide_request() {
  base::ResourceRequest r;
  const auto nodes = static_cast<std::uint32_t>(sites_.size());
  r.nodes = static_cast<std::uint32_t>(chance_.between(nodes / 2, nodes - nodes / 16));
  if (chance_.one_in(4)) r.weight = static_cast<std::uint32_t>(chance_.between(1, 5));
  r.requeue = base::Requeue::Yes;
  return r;
}

base::ResourceRequest World::some_request() {
  if (options_.crowded) return wide_request();
  base::ResourceRequest r;
  const auto nodes = static_cast<std::uint32_t>(sites_.size());
  switch (chance_.below(4)) {
    case 0:
      r.nodes = nodes;
      break;
    case 1:
      r.nodes = static_cast<std::uint32_t>(chance_.between(1, nodes));
      break;
    case 2:
      r.tasks = static_cast<std::uint32_t>(chance_.between(1, 2 * nodes));
      break;
    default:
      r.nodes = static_cast<std::uint32_t>(chance_.between(1, std::min(nodes, 4U)));
  }
  if (r.nodes > 0 && chance_.one_in(5)) {
    r.most_nodes = r.nodes + static_cast<std::uint32_t>(chance_.below(nodes));
  }
  if (r.nodes > 0 && chance_.one_in(3)) r.tasks_per_node = 2;
  if (r.nodes > 0 && chance_.one_in(6)) r.tasks_per_node = 7;  // more than a node has cores
  if (chance_.one_in(5)) r.cpus_per_task = 2;
  if (chance_.one_in(2)) r.memory_per_node = base::Bytes{chance_.between(1, 6)};
  if (chance_.one_in(12)) r.queue = base::Queue::Exclusive;
  if (chance_.one_in(12)) r.queue = base::Queue::High;
  if (chance_.one_in(16)) r.queue = base::Queue::Urgent;
  if (chance_.one_in(4)) r.weight = static_cast<std::uint32_t>(chance_.between(1, 5));
  if (chance_.one_in(8)) r.priority = static_cast<std::int32_t>(chance_.below(3));
  r.held = chance_.one_in(20);
  if (chance_.one_in(10)) r.scheduled_limit = chance_.between(50ms, 2s);
  if (chance_.one_in(10)) r.wall_limit = chance_.between(100ms, 5s);
  r.overlay = chance_.one_in(15);
  r.kill_deadlock = chance_.one_in(2);
  if (chance_.one_in(2)) r.requeue = base::Requeue::Yes;
  if (chance_.one_in(8)) r.reservation = fmt::format("r{}", last_reservation_);
  if (chance_.one_in(4) && !r.overlay) r.scratch = base::Bytes{chance_.between(1, 20)};
  if (chance_.one_in(10)) r.except_nodes = {fmt::format("node{:02}", chance_.below(nodes))};
  return r;
}

Behaviour World::some_behaviour() {
  Behaviour b;
  b.work = chance_.one_in(4) ? chance_.between(500ms, 3s) : chance_.between(1ms, 400ms);
  if (options_.crowded) {
    b.work = chance_.between(200ms, 600ms);
    b.nap_after = b.work / 2 + chance_.between(10ms, 100ms);
    b.nap = chance_.between(2s, 4s);
    return b;
  }
  if (chance_.one_in(15)) b.refusing_node = static_cast<std::uint32_t>(chance_.below(4));
  if (chance_.one_in(8)) {
    b.failing_rank = static_cast<std::uint32_t>(chance_.below(4));
    b.code = static_cast<int>(chance_.between(1, 255));
    b.signal = chance_.one_in(3) ? 11 : 0;
    b.aborts = chance_.one_in(4);
  }
  // Naps make runs longer, and each simulated second of thousands of nodes takes long.
  const bool is_large = sites_.size() > 64;
  if (chance_.one_in(is_large ? 8 : 3)) {
    b.nap_after = b.work / 4 + chance_.between(1ms, 20ms);
    b.nap = chance_.one_in(2) ? chance_.between(10ms, 400ms) : chance_.between(500ms, 3s);
    b.deadlocks = !is_large && chance_.one_in(6);
  }
  return b;
}

// The units depend on the job's number, so that other random choices stay the same.
void World::add_units(base::ResourceRequest& request, std::uint64_t number) const {
  if (request.overlay || options_.crowded) return;
  if (number % 4 == 1) request.generic = {{"gpu", 1 + static_cast<std::uint32_t>(number / 4 % 2)}};
  if (number % 4 == 2) request.generic = {{"part", 1, base::Bytes{number / 4 % 3}}};
  if (number % 7 == 3) request.features = {"even|odd"};
  if (number % 7 == 4) request.features = {"even"};
}

void World::submit() {
  base::ResourceRequest request = some_request();
  add_units(request, last_job_ + 1);
  if (!head_->check(request)) return;
  const JobId job{++last_job_};
  behaviours_[job] = some_behaviour();
  // This depends on the job's number, so that other random choices stay the same.
  if (options_.hangs && job.value() % 11 == 0) {
    behaviours_[job].hanging_node = static_cast<std::uint32_t>(job.value() / 11 % 2);
  }
  // Deadlocks outside the timetable are not detected.
  if (request.overlay) behaviours_[job].deadlocks = false;
  // The job is on disk before the answer, and before it is placed.
  Stored& stored = disk_[job];
  stored.view.id = job;
  stored.view.user = base::UserId{1000};
  stored.view.request = request;
  stored.view.keep_going = chance_.one_in(6);
  const bool keep_going = stored.view.keep_going;
  const auto actions = head_->submit(job, base::UserId{1000}, request, head_now());
  if (!actions) broken("refused after check(): " + actions.error().message());
  (void)head_->set_keep_going(job, keep_going).has_value();
  head_does(*actions);
}

void World::user_acts() {
  if (!head_) return;
  if (chance_.one_in(3)) return submit();
  act_on_some_job();
}

void World::act_on_some_job() {
  std::vector<JobId> live;
  for (const auto& [id, stored] : disk_) {
    if (!base::is_final(stored.view.state)) live.push_back(id);
  }
  if (live.empty()) return;
  const JobId job = live[chance_.below(live.size())];
  const TimePoint now = head_now();
  switch (chance_.below(14)) {
    case 0:
    case 1:
      return head_does(head_->cancel(job, gang::EndCause::User, now));
    case 2:
    case 3:
      return head_does(head_->suspend(job, now));
    case 4:
    case 5:
    case 6:
      return head_does(head_->resume(job, now));
    case 7:
      return head_does(head_->hold(job, now));
    case 8:
    case 9:
    case 10:
      return head_does(head_->release(job, now));
    case 11:
      return head_does(
          head_->set_weight(job, static_cast<std::uint32_t>(chance_.between(1, 7)), now));
    default:
      return head_does(head_->signal(job, 10, now));
  }
}

// Reserves for users, or for no one. Two reservations may hold the same node at a time, and both
// apply.
void World::reserve() {
  if (!head_) return;
  const TimePoint now = events_.now();
  std::erase_if(reserved_, [&](const Reserved& r) { return r.end <= now; });
  if (reserved_.size() < 3) {
    Reserved made;
    made.reservation.name = fmt::format("r{}", ++last_reservation_);
    const std::uint64_t first = chance_.below(sites_.size());
    const std::uint64_t count = 1 + chance_.below(std::max<std::uint64_t>(1, sites_.size() / 3));
    for (std::uint64_t i = first; i < std::min<std::uint64_t>(first + count, sites_.size()); ++i) {
      made.reservation.nodes.emplace_back(static_cast<std::uint32_t>(i));
    }
    made.start = now + (chance_.one_in(4) ? 0s : chance_.between(100ms, 3s));
    made.end = made.start + chance_.between(100ms, 3s);
    if (!chance_.one_in(3)) made.reservation.users = {base::UserId{1000}};
    reserved_.push_back(std::move(made));
  } else if (chance_.one_in(2)) {
    reserved_.erase(reserved_.begin());
  }
  head_does(head_->set_reservations(reservations(), head_now()));
}

void World::operate() {
  if (!head_) return;
  const NodeId node{static_cast<std::uint32_t>(chance_.below(sites_.size()))};
  switch (chance_.below(8)) {
    case 7:
      return head_does(head_->set(base::Setting::Fill, chance_.one_in(2), head_now()));
    case 6:
      return head_does(head_->set(base::Setting::IdleDetection, !chance_.one_in(4), head_now()));
    case 0:
      quantum_ = chance_.one_in(2) ? 100ms : chance_.between(10ms, 200ms);
      return head_does(head_->set(base::Setting::Quantum, quantum_.count(), head_now()));
    case 1:
      slots_ = static_cast<std::uint32_t>(chance_.between(2, 8));
      return head_does(head_->set(base::Setting::Slots, slots_, head_now()));
    case 2:
      return head_does(head_->drain(node, "by chance", head_now()));
    default:
      return head_does(head_->resume_node(node, head_now()));
  }
}

void World::misfortune() {
  const std::size_t index = chance_.below(sites_.size());
  Site& site = sites_[index];
  switch (chance_.below(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
      ++seen_.cuts;
      return site.link->cut();
    case 4:
    case 5:
      return site.link->stall(chance_.between(10ms, 4s));
    case 6:
      return partition();
    case 7:
      if (!site.node->daemon_runs()) return;
      ++seen_.node_crashes;
      site.link->cut_silently_at_node();
      site.node->crash();
      return events_.after(chance_.between(1s, 10s), [&site] {
        if (!site.node->daemon_runs()) site.node->power_on();
      });
    case 8:
    case 9:
      if (!site.node->daemon_runs()) return;
      ++seen_.daemon_restarts;
      site.link->cut_silently_at_node();
      site.node->stop_daemon();
      return events_.after(chance_.between(20ms, 2s), [&site] {
        if (!site.node->daemon_runs()) site.node->restart_daemon();
      });
    case 10:
      return chance_.one_in(3) ? head_crash() : void();
    default:
      return;
  }
}

void World::partition() {
  for (Site& site : sites_) {
    if (!chance_.one_in(3)) continue;
    site.reachable = false;
    if (chance_.one_in(2)) {
      site.link->cut();
    } else {
      site.link->stall(7s);
    }
  }
  events_.after(chance_.between(100ms, 6s), [this] {
    for (Site& site : sites_) site.reachable = true;
  });
}

// Repeats old messages, in any order, and reports about attempts that never existed.
void World::duplicate() {
  Site& site = sites_[chance_.below(sites_.size())];
  ++seen_.duplicates;
  switch (chance_.below(4)) {
    case 0:
      if (!site.said.empty()) {
        const Upward m = site.said[chance_.below(site.said.size())];
        if (!std::holds_alternative<base::NodeHello>(std::get<base::NodeToHead>(m))) {
          site.link->up(m);
        }
      }
      return;
    case 1:
      if (!site.heard.empty()) site.link->down(site.heard[chance_.below(site.heard.size())]);
      return;
    case 2: {
      const base::AttemptId never{(last_job_ + 1000 + chance_.below(100)) * 256 + 1};
      return site.link->up(base::NodeToHead{base::TaskEnded{never, {base::Rank{7}, 1, 0}}});
    }
    default:
      return;
  }
}

}  // namespace score::sim
