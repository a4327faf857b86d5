// To limit the cost, a pass over the queue happens only when room has grown. It skips every job
// that needs no less than one that found no place. A new job is tried alone.
#include "gang/schedule/placer.hpp"

#include "gang/schedule/batch_policy.hpp"
#include "gang/schedule/dqt_policy.hpp"
#include "gang/schedule/matrix_policy.hpp"
#include "gang/schedule/request_check.hpp"

#include <algorithm>

namespace score::gang {

using base::Errc;
using base::fail;

namespace {

std::unique_ptr<Policy> make_policy(Room& room) {
  switch (room.config().placement) {
    case Placement::Matrix:
      return std::make_unique<MatrixPolicy>(room);
    case Placement::Dqt:
      return std::make_unique<DqtPolicy>(room);
    case Placement::Slurm:
      return std::make_unique<MatrixPolicy>(room, MatrixPolicy::Rules{false, false, false});
    case Placement::Fcfs:
    case Placement::Easy:
    case Placement::Conservative:
      return std::make_unique<BatchPolicy>(room);
  }
  return nullptr;
}

// Only these jobs may be compared by their shapes, and with reservations by their time limits too.
bool is_plain(const Job& job) {
  return !job.is_exclusive() && !job.overlay() && job.allowed.empty() &&
         job.request.generic.empty() && job.request.reservation.empty() && !job.is_near;
}

// Needs holds the needs of a plain job, by which two jobs are compared.
struct Needs {
  Shape shape;
  std::optional<Duration> longest;  // see Occupant::bound
  std::size_t rows_kept = 0;        // see Room::rows_kept_from()
  // The user, if a share of places may keep this one from room that others find.
  std::optional<UserId> user;
};

// Returns whether room for the job would also be room for the one that failed.
bool is_no_smaller(const Needs& job, const Needs& failed) {
  if (failed.user && failed.user != job.user) return false;
  const bool lasts_as_long = !job.longest || (failed.longest && *job.longest >= *failed.longest);
  return lasts_as_long && job.rows_kept >= failed.rows_kept &&
         needs_no_less(job.shape, failed.shape);
}

// Neighbours in the queue are often alike, so the last useful entry is examined first.
bool cannot_fit(const Needs& job, std::vector<Needs>& failed) {
  const auto found =
      std::ranges::find_if(failed, [&](const Needs& other) { return is_no_smaller(job, other); });
  if (found == failed.end()) return false;
  std::swap(*found, failed.front());
  return true;
}

// Entries that are no smaller than the new one are redundant.
void note_failed(const Needs& smaller, std::vector<Needs>& failed) {
  std::erase_if(failed, [&](const Needs& other) { return is_no_smaller(other, smaller); });
  failed.push_back(smaller);
}

}  // namespace

Placer::Placer(Tables& tables)
    : nodes_(tables.nodes), jobs_(tables.jobs), room_(tables), policy_(make_policy(room_)) {}

void Placer::add_node() {
  room_.add_node();
  policy_->add_node();
  for (auto& [id, job] : jobs_.all()) job.allowed = allowed_nodes(nodes_, job.request);
}

void Placer::follow_features(NodeIndex node) {
  for (auto& [id, job] : jobs_.all()) {
    if (job.request.features.empty() || node >= job.allowed.size()) continue;
    job.allowed[node] = allows(nodes_, job.request, node);
  }
}

// Jobs that have a place keep it, also on nodes that have left their partition.
void Placer::follow_partitions() {
  for (auto& [id, job] : jobs_.all()) {
    if (!job.request.partition.empty()) job.allowed = allowed_nodes(nodes_, job.request);
  }
  sort_again();
  capacity_grew();
}

// ---- licenses ---------------------------------------------------------------------------------

void Placer::set_licenses(const std::vector<base::License>& totals, bool release_suspended) {
  licenses_.set(totals, release_suspended);
  for (const auto& [id, job] : jobs_.all()) {
    if (job.state == JobState::Suspended) suspended(job);
  }
  capacity_grew();
}

void Placer::suspended(const Job& job) {
  if (licenses_.suspended(job)) capacity_grew();
}

// Licenses are kept only for a job that lacks nothing else, so a job whose nodes are down or whose
// user is at a limit keeps none from others.
void Placer::await_licenses(const Job& job) {
  if (licenses_.has_room(job) || !is_gate_open(job, nullptr)) return;
  if (find_spot(job)) licenses_.await(job);
}

// ---- the gate ---------------------------------------------------------------------------------

bool Placer::is_open(const Job& job, const Spot* spot) const {
  return licenses_.has_room(job) && is_gate_open(job, spot);
}

bool Placer::is_gate_open(const Job& job, const Spot* spot) const {
  if (gate_ == nullptr || !job.has_row()) return true;
  return gate_->is_open(
      job, spot != nullptr ? spot->choice.nodes.size() : std::max<std::size_t>(job.shape.nodes, 1));
}

// The count of nodes is the one that the job would get, if it states only its number of tasks.
std::string Placer::why_closed(const Job& job) const {
  if (gate_ == nullptr || !job.has_row()) return {};
  std::string why = gate_->why_closed(job, std::max<std::size_t>(job.shape.nodes, 1));
  const bool is_certain = job.shape.nodes > 0 && job.shape.most_nodes <= job.shape.nodes;
  if (!why.empty() || is_certain) return why;
  const auto spot = find_spot(job);
  return spot ? gate_->why_closed(job, spot->choice.nodes.size()) : why;
}

// No room is kept for a job that may not take it.
void Placer::break_closed_promise() {
  const auto ahead = policy_->promised();
  if (ahead && !is_open(jobs_.at(*ahead))) policy_->drop_promise();
}

WaitKey Placer::key_of(const Job& job) const {
  WaitKey key = job.wait;
  key.minus_order = -std::int64_t{nodes_.partitions().order_of(job.request.partition)};
  key.rank = gate_ != nullptr && job.has_row() ? gate_->rank(job) : 0;
  return key;
}

void Placer::sort_again() {
  std::map<WaitKey, Job*> again;
  for (const auto& [key, job] : waiting_) {
    job->wait = key_of(*job);
    again.emplace(job->wait, job);
  }
  if (again == waiting_) return;
  waiting_ = std::move(again);
  policy_->reordered();
}

void Placer::reorder() {
  if (gate_ == nullptr) return;
  sort_again();
  for (auto& [id, job] : jobs_.all()) {
    if (!job.placed || !job.has_row()) continue;
    set_boost(job);
  }
  capacity_grew();
}

// ---- the line ---------------------------------------------------------------------------------

bool Placer::try_place(Job& job) {
  if (!is_open(job)) return false;
  const auto spot = find_spot(job);
  if (!spot || !is_open(job, &*spot)) return false;
  room_.put(job, *spot);
  if (job.is_step()) {
    waiting_steps_.erase(job.wait);
    return true;
  }
  waiting_.erase(job.wait);
  note_placed(job);
  return true;
}

void Placer::note_placed(Job& job) {
  job.boost = policy_->boost_of(job);
  policy_->placed(job);
  licenses_.take(job);
  if (licenses_.forget(job.id)) capacity_grew();
  if (gate_ != nullptr && job.has_row()) {
    job.gate_boost = gate_->boost(job);
    job.boost *= job.gate_boost;
    gate_->placed(job);
  }
  break_closed_promise();
}

// The job has just begun to wait and room has not grown, so the other jobs need not be tried.
bool Placer::try_new(Job& job) {
  job.wait = key_of(job);
  line_of(job).emplace(job.wait, &job);
  if (job.is_step()) return !nodes_.is_awaiting() && try_place(job);
  if (!policy_->tries_alone(job)) capacity_grew();
  if (nodes_.is_awaiting() || room_.has_grown()) return false;
  if (try_place(job)) return true;
  if (is_open(job)) {
    policy_->stays(job);
  } else {
    await_licenses(job);
  }
  return false;
}

void Placer::enqueue(Job& job) {
  job.wait = key_of(job);
  line_of(job).emplace(job.wait, &job);
  capacity_grew();
}

void Placer::withdraw(const Job& job) {
  line_of(job).erase(job.wait);
  if (licenses_.forget(job.id)) capacity_grew();
  if (!job.is_step()) policy_->withdrawn(job);
}

void Placer::set_priority(Job& job, std::int32_t priority) {
  const bool waits = line_of(job).erase(job.wait) > 0;
  job.request.priority = priority;
  job.wait.minus_priority = -std::int64_t{priority};
  if (!waits) return;
  line_of(job).emplace(job.wait, &job);
  policy_->reordered();
  capacity_grew();
}

void Placer::change(Job& job, const base::ResourceRequest& request) {
  if (job.placed) {
    room_.change(job, request);
  } else {
    withdraw(job);
    job.request = request;
    job.allowed = allowed_nodes(nodes_, request);
  }
  const std::uint64_t number = job.wait.number;
  job.wait = jobs_.next_wait_key(request, job.id);
  job.wait.number = number;
  const bool waits = job.state == JobState::Pending && !request.held && !job.is_paused;
  if (waits) enqueue(job);
}

std::optional<Spot> Placer::find_spot(const Job& job, const std::vector<base::Bytes>& free) {
  room_.assume_free(&free);
  auto spot = policy_->find_spot(job);
  room_.assume_free(nullptr);
  return spot;
}

std::vector<JobId> Placer::place_waiting(TimePoint now) {
  std::vector<JobId> placed;
  if (nodes_.is_awaiting() || !room_.has_grown()) return placed;
  if (policy_->repack()) jobs_.mark_changed();
  room_.set_known();
  policy_->begin_pass(now);
  licenses_.begin_pass();
  break_closed_promise();
  place_steps(placed);
  std::vector<Needs> failed;
  const bool has_reservations = !room_.calendar().empty();
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    Job& job = *(it++)->second;
    const bool may_skip = is_plain(job) && policy_->skips_larger(job) && !room_.has_grant(job.id);
    const auto longest = has_reservations ? room_.occupant(job).bound : std::nullopt;
    const Needs needs{job.shape, longest, room_.rows_kept_from(job),
                      room_.is_short_of_places(job.user) ? std::optional(job.user) : std::nullopt};
    if (may_skip && cannot_fit(needs, failed)) continue;
    if (!is_open(job)) {
      await_licenses(job);
      continue;
    }
    if (try_place(job)) {
      placed.push_back(job.id);
      continue;
    }
    const bool goes_on = policy_->stays(job);
    if (policy_->promised() == job.id) licenses_.await(job);
    if (!goes_on) break;
    if (may_skip) note_failed(needs, failed);
  }
  reweigh();
  return placed;
}

void Placer::reweigh() {
  const std::set<JobId>* boosted = policy_->boosted();
  if (boosted == nullptr) return;
  for (const JobId id : *boosted) set_boost(jobs_.at(id));
}

void Placer::set_boost(Job& job) {
  const std::uint32_t gate_boost = gate_ != nullptr ? gate_->boost(job) : 1;
  const std::uint32_t boost = policy_->boost_of(job) * gate_boost;
  if (boost == job.boost && gate_boost == job.gate_boost) return;
  job.boost = boost;
  job.gate_boost = gate_boost;
  jobs_.mark_changed();
}

// Steps take nothing from waiting jobs, so they wait for none of them.
void Placer::place_steps(std::vector<JobId>& placed) {
  for (auto it = waiting_steps_.begin(); it != waiting_steps_.end();) {
    Job& job = *(it++)->second;
    if (try_place(job)) placed.push_back(job.id);
  }
}

bool Placer::restore(Job& job) {
  if (!room_.restore(job)) return false;
  if (!job.is_step()) note_placed(job);
  return true;
}

void Placer::unplace(Job& job) {
  if (gate_ != nullptr && job.has_row()) gate_->unplaced(job);
  licenses_.give_back(job.id);
  room_.unplace(job);
  if (!job.is_step()) policy_->unplaced(job);
}

base::Result<void> Placer::check() const {
  if (auto r = room_.check(); !r) return r;
  if (auto r = licenses_.check(); !r) return r;
  return check_line();
}

// The queue must hold the pending jobs that are not held, and none for which there is room.
base::Result<void> Placer::check_line() const {
  for (const auto& [id, job] : jobs_.all()) {
    const std::map<WaitKey, Job*>& line = job.is_step() ? waiting_steps_ : waiting_;
    const auto in_line = line.find(job.wait);
    if (in_line != line.end() && in_line->second != &job) {
      return fail(Errc::WrongState, "the place of job {} in line is that of job {}", id,
                  in_line->second->id);
    }
    const bool is_due = job.state == JobState::Pending && !job.request.held && !job.is_paused;
    if (is_in_line(job) != is_due) {
      return fail(Errc::WrongState, "job {} is {} and {} in line", id, to_string(job.state),
                  is_in_line(job) ? "" : "not");
    }
    const std::size_t most = std::max(job.shape.nodes, job.shape.most_nodes);
    const std::size_t used = job.cells.nodes.size();
    if (job.placed && job.shape.nodes > 0 && (used < job.shape.nodes || used > most)) {
      return fail(Errc::WrongState, "job {} has {} nodes, not {} to {}", id, used, job.shape.nodes,
                  most);
    }
  }
  if (room_.has_grown() || nodes_.is_awaiting()) return {};
  constexpr int kTried = 16;  // each try is expensive
  int tried = 0;
  for (const auto& [wait, waiting] : waiting_) {
    if (++tried > kTried) break;
    const Job& job = *waiting;
    const auto spot = is_open(job) ? find_spot(job) : std::nullopt;
    if (spot && is_open(job, &*spot)) {
      return fail(Errc::WrongState, "job {} waits although there is room", wait.job);
    }
  }
  return {};
}

}  // namespace score::gang
