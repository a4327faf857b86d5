#include "tests/sim/world.hpp"

#include <fmt/format.h>

namespace score::sim {

void World::head_start() {
  gang::ClusterConfig config;
  config.quantum = quantum_;
  config.max_slots = slots_;
  config.placement = options_.placement;
  config.long_limit = 500ms;  // some limits of the random jobs are longer
  config.long_shared = 2s;
  config.young_time = 1s;
  config.node_timeout = 5s;  // shorter than most partitions
  head_.emplace(config);
  ++head_number_;
  head_->set_incarnation(base::Epoch{head_number_});
  const bool rebooted = head_number_ > 1 && chance_.one_in(4);
  if (rebooted) head_offset_ = chance_.between(0ns, 2000s) - 1000s;
  for (std::uint32_t i = 0; i < sites_.size(); ++i) {
    (void)head_->add_node(NodeId{i}, fmt::format("node{:02}", i)).has_value();
  }
  std::vector<gang::RecoveredJob> jobs;
  for (auto& [id, stored] : disk_) {
    if (rebooted)
      stored.view.submitted = stored.view.started = std::nullopt;  // the clock is a new one
    if (!base::is_final(stored.view.state)) jobs.push_back(recovered(stored));
  }
  head_does(head_->recover(jobs, head_now()));
  if (head_) head_does(head_->set_reservations(reservations(), head_now()));
}

std::vector<gang::Reservation> World::reservations() const {
  std::vector<gang::Reservation> all;
  for (const Reserved& r : reserved_) {
    all.push_back(r.reservation);
    all.back().start = r.start + head_offset_;
    all.back().end = r.end + head_offset_;
  }
  return all;
}

gang::RecoveredJob World::recovered(const Stored& stored) const {
  const gang::JobView& v = stored.view;
  gang::RecoveredJob job;
  job.id = v.id;
  job.user = v.user;
  job.request = v.request;
  job.state = v.state;
  job.attempt = v.attempt;
  job.nodes = v.nodes;
  job.cores = v.cores;
  job.tasks_on_node = v.tasks_on_node;
  job.units = v.units;
  job.scheduled = v.scheduled;
  job.submitted = v.submitted;
  job.started = v.started;
  job.keep_going = v.keep_going;
  job.ending = v.ending;
  job.exit_code = v.exit_code;
  job.reasons = v.reasons;
  job.restarts = v.restarts;
  return job;
}

void World::head_crash() {
  if (!head_) return;
  count_idle();
  launching_since_.clear();
  not_begun_since_.clear();
  hangs_from_.clear();
  kept_out_since_.clear();
  not_displaced_since_.clear();
  lingers_since_.clear();
  seen_.epochs += head_->counters().epochs;
  seen_.stale_reports += head_->counters().stale_reports;
  seen_.late_timetables += head_->counters().late_epochs;
  head_.reset();
  head_is_doomed_ = false;
  ++head_timer_;
  ++seen_.head_restarts;
  for (Site& site : sites_) {
    if (site.link) site.link->cut_silently_at_head();
  }
  events_.after(chance_.between(50ms, 9s), [this] {
    if (!head_) head_start();
  });
}

void World::store(JobId job) {
  const auto view = head_->job(job, head_now());
  if (!view) broken(fmt::format("job {} changed and is not there", job));
  Stored& stored = disk_[job];
  check_placed(stored.view, *view);
  if (base::is_final(stored.view.state) && stored.view.state != view->state) {
    broken(fmt::format("job {} ended twice: {} and {}", job, int(stored.view.state),
                       int(view->state)));
  }
  if (base::is_final(view->state) && !base::is_final(stored.view.state)) {
    ++seen_.ends[view->state];
    const bool was_deadlock = !view->reasons.empty() && view->reasons[0].starts_with("deadlock");
    seen_.deadlocks_killed += was_deadlock ? 1 : 0;
    const bool hung = !view->reasons.empty() && view->reasons[0].starts_with("no task began");
    seen_.hangs_ended += hung ? 1 : 0;
    seen_.left_reserved += view->limit.starts_with("reservation") ? 1 : 0;
  }
  stored.view = *view;
}

void World::head_does(const gang::Actions& actions) {
  for (const gang::Action& action : actions) {
    // A crashing head has written only a prefix of its actions to the disk and the wire.
    if (head_is_doomed_) return;
    if (options_.faults && !healing_ && chance_.one_in(20000)) {
      head_is_doomed_ = true;
      return events_.after(0ns, [this] { head_crash(); });
    }
    if (const auto* job = std::get_if<gang::JobChanged>(&action)) {
      store(job->job);
      const auto view = head_->job(job->job, head_now());
      if (!view || view->limit.empty() || view->ending || base::is_final(view->state)) continue;
      events_.after(chance_.between(0ns, 100ms), [this, job = job->job] {
        if (head_) head_does(head_->cancel(job, gang::EndCause::TimeLimit, head_now()));
      });
    } else if (const auto* send = std::get_if<gang::SendToNode>(&action)) {
      Site& site = sites_[send->node.value()];
      if (chance_.one_in(60)) {
        site.heard.push_back(send->message);
        if (site.heard.size() > 20) site.heard.pop_front();
      }
      site.link->down(send->message);
    } else if (const auto* changed = std::get_if<gang::NodeChanged>(&action)) {
      const auto view = head_->node(changed->node);
      Site& site = sites_[changed->node.value()];
      if (view->state == gang::NodeState::Down && site.link) site.link->cut_silently_at_head();
    }
  }
  head_arm();
}

void World::head_does(const base::Result<gang::Actions>& actions) {
  if (actions) head_does(*actions);  // a refused request is allowed
}

void World::head_arm() {
  if (!head_) return;
  const auto due = head_->next_deadline();
  const auto number = ++head_timer_;
  if (!due) return;
  events_.at(*due - head_offset_ + chance_.between(0ns, 300us), [this, number] {
    if (head_ && number == head_timer_) head_does(head_->tick(head_now()));
  });
}

void World::head_hears(std::size_t index, const Upward& message) {
  if (!head_) return;
  const NodeId node{static_cast<std::uint32_t>(index)};
  if (const auto* ping = std::get_if<Ping>(&message)) {
    sites_[index].link->down(Pong{{ping->node_sent, head_now(), head_now(), {}}});
    return head_does(head_->heartbeat(node, head_now()));
  }
  const auto& said = std::get<base::NodeToHead>(message);
  if (const auto* hello = std::get_if<base::NodeHello>(&said)) {
    return head_does(head_->node_connected(node, *hello, head_now()));
  }
  head_does(head_->node_says(node, said, head_now()));
}

}  // namespace score::sim
