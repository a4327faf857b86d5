// A claimant is a job that waits for memory. The claimants are served in order, each from the
// memory that those before it leave:
//
// - If its memory is free it gets it.
// - Otherwise it is decided which jobs leave for it: those on its nodes that have been in memory
//   longest. They leave together, at the end of the turn of the last of them. Until then smaller
//   jobs may use what is free, as far as that does not delay the claimant, as in EASY backfilling.
// - On nodes where jobs are to leave for a claimant, none leaves for those behind it. So the turns
//   that it waits for end, whatever comes later, and no job starves.
//
// A job that has not started yet counts as waiting for as long as a turn lasts at most already, so
// that it starts before jobs return that have had a turn. This advantage is bounded, so they return
// all the same.
//
// A job that may not be parked would keep the memory of the others until it ends, so none leaves
// for it. It starts when others have ended, and jobs behind it in the queue wait for it.
#include "gang/lifecycle/memory_turns.hpp"

#include "gang/lifecycle/may_park.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace score::gang {

using base::Bytes;

namespace {

constexpr Duration kLeastTurn = std::chrono::seconds{1};
// An exchange takes this beside paging: stops, messages, a new timetable.
constexpr Duration kExchange = std::chrono::milliseconds{100};
constexpr std::size_t kMostWaiting = 16;  // jobs of the queue that are examined

using Needs = std::vector<std::pair<NodeIndex, Bytes>>;
using OnNode = std::vector<Bytes>;  // [node]

// Returns when the job will have been idle for so long that it gives its memory up at once.
TimePoint idle_long_at(const Tables& tables, const Job& job) {
  const Duration after = tables.config.memory_idle_after;
  if (after == Duration::zero() || job.idleness->activity() != JobActivity::Idle)
    return TimePoint::max();
  const auto since = job.idleness->idle_since();
  return since ? *since + after : TimePoint::max();
}

TimePoint began_of(const Job& job) {
  return std::max(job.parked->began, job.started.value_or(TimePoint{}));
}

// Round is one pass over the claimants.
class Round {
 public:
  struct Parts {
    Tables& tables;
    Placer& placer;
    const PageRates& rates;
    const std::map<NodeIndex, TimePoint>& exchanged;
    TimePoint now;
  };

  explicit Round(const Parts& parts) : p_(parts) {
    const std::size_t count = p_.tables.nodes.size();
    closed_.resize(count);
    for (NodeIndex node = 0; node < count; ++node) {
      const Reservations& here = p_.placer.on_node(node);
      const base::NodeInfo& info = p_.tables.nodes[node].info;
      free_.push_back(info.memory + here.lent - here.memory);
      swap_.push_back(info.swap - swap_used(node));
    }
    withheld_.resize(count);
  }

  void serve(Job& job) {
    const bool is_parked = job.placed;
    std::optional<Needs> needs = is_parked ? parked_needs(job) : waiting_needs(job, free_);
    if (needs && fits(*needs)) {
      for (const auto& [node, bytes] : *needs) free_[node] -= bytes;
      if (is_parked) {
        plan_.back.push_back(job.id);
      } else {
        for (const auto& [node, bytes] : *needs) withheld_[node] += bytes;
        grants_[job.id] = std::move(*needs);
      }
      return;
    }
    if (!is_parked) needs = waiting_needs(job, possible(job, false));
    if (!needs && !is_parked) needs = waiting_needs(job, possible(job, true));
    if (!needs) return;
    if (const auto leaving = choose(*needs, job)) wait_for(job, *needs, *leaving);
  }

  MemoryPlan plan_;
  std::map<JobId, Needs> grants_;
  OnNode withheld_;  // from jobs that are not claimants
  std::optional<TimePoint> next_;
  std::vector<JobId> told_;

 private:
  [[nodiscard]] Bytes swap_used(NodeIndex node) const {
    Bytes used{0};
    for (const JobId id : p_.placer.on_node(node).jobs) {
      const Job& job = p_.tables.jobs.at(id);
      const auto member = job.member_on(node);
      if (!job.parked->is_away() || !member || *member >= job.parked->parts.size()) continue;
      const Parked::Part& part = job.parked->parts[*member];
      used += part.is_out ? part.in_swap : job.shape.memory;
    }
    return used;
  }

  [[nodiscard]] static Needs parked_needs(const Job& job) {
    Needs out;
    for (std::size_t m = 0; m < job.parked->parts.size(); ++m) {
      out.emplace_back(job.cells.nodes[m], job.parked->parts[m].lent);
    }
    return out;
  }

  [[nodiscard]] std::optional<Needs> waiting_needs(const Job& job, const OnNode& free) {
    const auto spot = p_.placer.find_spot(job, free);
    if (!spot || !p_.placer.is_open(job, &*spot)) return std::nullopt;
    Needs out;
    for (const NodeIndex node : spot->choice.nodes) out.emplace_back(node, job.shape.memory);
    return out;
  }

  [[nodiscard]] bool fits(const Needs& needs) const {
    return std::ranges::all_of(needs, [&](const auto& n) { return n.second <= free_[n.first]; });
  }

  // Returns the memory that jobs give up there that leave for this one already.
  [[nodiscard]] Bytes coming(const Job& job, NodeIndex node) const {
    Bytes sum{0};
    for (const JobId id : p_.placer.on_node(node).jobs) {
      const Job& other = p_.tables.jobs.at(id);
      const bool is_leaving =
          other.parked->residence == Residence::Leaving && other.parked->for_job == job.id;
      const auto member = other.member_on(node);
      if (!is_leaving || !member || *member >= other.parked->parts.size()) continue;
      sum += gain_of(other, node) - other.parked->parts[*member].lent;
    }
    return sum;
  }

  // Returns what others could have of the job's memory there if it left. What stayed at the last
  // time will stay again.
  [[nodiscard]] static Bytes gain_of(const Job& job, NodeIndex node) {
    const auto member = job.member_on(node);
    const bool is_known = member && *member < job.parked->parts.size();
    return job.shape.memory - (is_known ? job.parked->parts[*member].stays : Bytes{0});
  }

  // Returns the same; 0 if the job is not on the node.
  [[nodiscard]] static Bytes member_gain(const Job& job, NodeIndex node) {
    return job.member_on(node) ? gain_of(job, node) : Bytes{0};
  }

  // Returns the jobs that may leave the node: idle ones first, then those that have been in memory
  // longest.
  [[nodiscard]] std::vector<const Job*> may_leave(NodeIndex node) const {
    std::vector<std::tuple<bool, TimePoint, JobId, const Job*>> found;
    for (const JobId id : p_.placer.on_node(node).jobs) {
      const Job& job = p_.tables.jobs.at(id);
      const bool is_there = job.state == JobState::Running && !job.parked->is_away();
      if (!is_there || job.is_high() || job.is_exclusive() || leaving_.contains(id)) continue;
      if (job.shape.memory == Bytes{0} || !has_swap(job)) continue;
      if (!why_not_parked(p_.tables, job).empty()) continue;
      const bool is_busy = idle_long_at(p_.tables, job) == TimePoint::max();
      found.emplace_back(is_busy, began_of(job), id, &job);
    }
    std::ranges::sort(found);
    std::vector<const Job*> out;
    for (const auto& [is_busy, began, id, job] : found) out.push_back(job);
    return out;
  }

  [[nodiscard]] bool has_swap(const Job& job) const {
    return std::ranges::all_of(job.cells.nodes,
                               [&](NodeIndex node) { return swap_[node] >= job.shape.memory; });
  }

  // Returns the memory that the waiting job could have once those have left that leave for it, and
  // all others that may leave.
  [[nodiscard]] OnNode possible(const Job& job, bool with_others) const {
    OnNode out = free_;
    for (NodeIndex node = 0; node < out.size(); ++node) {
      if (closed_[node]) continue;
      out[node] += coming(job, node);
      if (!with_others) continue;
      for (const Job* other : may_leave(node)) out[node] += gain_of(*other, node);
    }
    return out;
  }

  [[nodiscard]] bool is_enough(const Needs& needs, const Job& job,
                               const std::vector<const Job*>& leaving, const Job* without) const {
    return std::ranges::all_of(needs, [&](const auto& need) {
      Bytes there = free_[need.first] + coming(job, need.first);
      for (const Job* other : leaving) {
        if (other != without) there += member_gain(*other, need.first);
      }
      return there >= need.second;
    });
  }

  // Returns the jobs that must leave; nullopt if that does not help. A small one that has been in
  // memory longer than those whose memory is enough stays.
  [[nodiscard]] std::optional<std::vector<const Job*>> choose(const Needs& needs,
                                                              const Job& job) const {
    std::vector<const Job*> out;
    for (const auto& [node, bytes] : needs) {
      Bytes there = free_[node] + coming(job, node);
      for (const Job* chosen : out) {
        there += member_gain(*chosen, node);
      }
      if (there >= bytes) continue;
      if (closed_[node]) return std::nullopt;
      for (const Job* other : may_leave(node)) {
        if (there >= bytes) break;
        if (std::ranges::find(out, other) != out.end()) continue;
        there += gain_of(*other, node);
        out.push_back(other);
      }
      if (there < bytes) return std::nullopt;
    }
    for (std::size_t i = 0; i < out.size();) {
      if (is_enough(needs, job, out, out[i])) {
        out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    return out;
  }

  void wait_for(Job& job, const Needs& needs, const std::vector<const Job*>& leaving) {
    const TimePoint due = leaving.empty() ? p_.now : end_of_turn(job, needs, leaving);
    for (const auto& [node, bytes] : needs) {
      Bytes gain = coming(job, node);
      for (const Job* other : leaving) {
        gain += member_gain(*other, node);
      }
      free_[node] -= bytes - gain;
      if (!job.placed) withheld_[node] += bytes - gain;
      closed_[node] = true;
    }
    Parked& parked = job.parked.edit();
    if (!leaving.empty()) parked.awaits.clear();
    for (const Job* other : leaving) {
      leaving_.insert(other->id);
      parked.awaits.push_back(other->id);
      for (const NodeIndex node : other->cells.nodes) {
        closed_[node] = true;
        swap_[node] -= other->shape.memory;
      }
      if (due <= p_.now) plan_.out.emplace_back(other->id, job.id);
    }
    parked.due = due;
    told_.push_back(job.id);
    if (due > p_.now) next_ = std::min(next_.value_or(due), due);
  }

  [[nodiscard]] TimePoint end_of_turn(const Job& job, const Needs& needs,
                                      const std::vector<const Job*>& leaving) const {
    std::map<NodeIndex, Duration> paging;
    for (const auto& [node, bytes] : needs) {
      const auto member = job.member_on(node);
      const bool is_in_swap = member && *member < job.parked->parts.size();
      if (!is_in_swap) continue;
      paging[node] = p_.rates.time(node, PageWay::In, job.parked->parts[*member].in_swap);
    }
    TimePoint began{};
    TimePoint all_idle{};
    for (const Job* other : leaving) {
      for (std::size_t m = 0; m < other->cells.nodes.size(); ++m) {
        paging[other->cells.nodes[m]] +=
            p_.rates.time(other->cells.nodes[m], PageWay::Out, usual_bytes(*other, m));
      }
      began = std::max(began, began_of(*other));
      all_idle = std::max(all_idle, idle_long_at(p_.tables, *other));
    }
    Duration longest{0};
    for (const auto& [node, time] : paging) {
      longest = std::max(longest, time);
      const auto last = p_.exchanged.find(node);
      if (last != p_.exchanged.end()) began = std::max(began, last->second);
    }
    const ClusterConfig& config = p_.tables.config;
    const Duration turn =
        (longest + kExchange) * 100 / std::max<std::int64_t>(1, config.memory_cost_percent);
    const Duration least = std::min(kLeastTurn, config.memory_turn_max);
    return std::min(began + std::clamp(turn, least, config.memory_turn_max), all_idle);
  }

  // Returns what goes out of the job's memory there, as measured before.
  [[nodiscard]] static Bytes usual_bytes(const Job& job, std::size_t member) {
    const bool is_known = member < job.parked->parts.size();
    const Bytes known = is_known ? job.parked->parts[member].usual : Bytes{0};
    return known > Bytes{0} ? known : job.shape.memory;
  }

  Parts p_;
  OnNode free_;               // memory that those served so far leave
  OnNode swap_;               // likewise
  std::vector<bool> closed_;  // [node] jobs leave there for an earlier claimant
  std::set<JobId> leaving_;
};

}  // namespace

void MemoryTurns::measured(NodeIndex node, const base::ParkReport& report) {
  rates_.note(node, report.out ? PageWay::Out : PageWay::In, report.moved, report.took);
}

void MemoryTurns::exchanged(const Job& job, TimePoint now) {
  for (const NodeIndex node : job.cells.nodes) exchanged_[node] = now;
}

// Returns the claimants in order.
std::vector<JobId> MemoryTurns::claimants(const std::vector<JobId>& parked) const {
  std::vector<std::pair<TimePoint, JobId>> found;
  for (const JobId id : parked) found.emplace_back(tables_.jobs.at(id).parked->left, id);
  TimePoint since{};
  std::size_t examined = 0;
  for (const auto& [key, job] : placer_.waiting()) {
    if (job->is_urgent() || job->overlay() || job->shape.memory == Bytes{0}) continue;
    if (!placer_.is_open(*job)) continue;
    if (!why_never_parked(tables_.config, job->request).empty()) break;
    if (++examined > kMostWaiting) break;
    // The order of the queue is kept.
    since = std::max(since, job->submitted.value_or(TimePoint{}) - tables_.config.memory_turn_max);
    found.emplace_back(since, job->id);
  }
  std::ranges::stable_sort(found, {}, &std::pair<TimePoint, JobId>::first);
  std::vector<JobId> out;
  for (const auto& [at, id] : found) out.push_back(id);
  return out;
}

void MemoryTurns::clear() {
  next_.reset();
  for (const JobId id : std::exchange(told_, {})) {
    Job* job = tables_.jobs.find(id);
    if (job == nullptr || job->parked->awaits.empty()) continue;
    job->parked.edit().awaits.clear();
  }
  placer_.grant({}, {});
}

MemoryPlan MemoryTurns::plan(const std::vector<JobId>& parked, TimePoint now) {
  const std::vector<JobId> order = claimants(parked);
  if (order.empty()) {
    clear();
    return {};
  }
  next_.reset();
  std::vector<JobId> before = std::exchange(told_, {});
  Round round({tables_, placer_, rates_, exchanged_, now});
  for (const JobId id : order) round.serve(tables_.jobs.at(id));
  told_ = std::move(round.told_);
  for (const JobId id : before) {
    Job* job = tables_.jobs.find(id);
    if (job == nullptr || std::ranges::find(told_, id) != told_.end()) continue;
    job->parked.edit().awaits.clear();
  }
  next_ = round.next_;
  placer_.grant(std::move(round.grants_), std::move(round.withheld_));
  return std::move(round.plan_);
}

}  // namespace score::gang
