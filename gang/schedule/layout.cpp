// Each row with active jobs is a row of the cycle. An active job runs in its home row and, by slot
// unification, in every other row where all its cores are free. If several could, the one with the
// least share for its weight does, a young one before the others. Jobs that ask for equal shares
// have the mean weight of those of their user and age. Three kinds of jobs are in no row:
//
// - An idle job whose cores a busy one needs. Its nodes let it run in the background and watch it.
// - A job that shares a core with a busy one of queue high and is not of that queue. Its gang could
//   not run as a whole on the remaining cores, so it is displaced on all its nodes until no busy
//   job of queue high has a core of it. Jobs of queue high and of queue urgent take turns among
//   themselves. A job whose memory is not there counts as displaced too.
// - A stopped job, whose tasks are being looked at. It is displaced, so that its nodes let it run
//   again when there is no head any more, and it displaces as before.
#include "gang/schedule/layout.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace score::gang {

namespace {

constexpr std::uint64_t kMostWeight = std::uint64_t{1} << 30;

// The greatest weight among the older jobs of a row, and among its young ones; 0: it has none.
using Weights = std::array<std::uint64_t, 2>;
constexpr std::size_t kOld = 0;
constexpr std::size_t kYoung = 1;

class LayoutMaker {
 public:
  LayoutMaker(const JobTable& jobs, const Matrix& matrix, bool idle_detection)
      : matrix_(matrix), idle_detection_(idle_detection) {
    for (const JobId id : jobs.active()) {
      const Job& job = jobs.at(id);
      if (job.parked->is_away()) {
        layout_.displaced.insert(id);
        continue;
      }
      if (!job.is_step()) active_.push_back(&job);
      if (job.request.equal_share && !job.is_step()) {
        Divided& divided = divided_[{job.user, job.is_young}];
        divided.sum += job.turn_weight();
        ++divided.jobs;
      }
      if (job.is_step() && is_busy(job)) kept_busy_.insert(job.request.inside);
    }
  }

  CycleLayout make() {
    displace();
    send_to_background();
    fill_home_rows();
    weigh_ages();
    unify();
    return std::move(layout_);
  }

 private:
  // Holds the weight that jobs divide which ask for equal shares.
  struct Divided {
    std::uint64_t sum = 0;
    std::uint64_t jobs = 0;
  };

  [[nodiscard]] std::uint64_t weight_of(const Job& job) const {
    if (!job.request.equal_share) return job.turn_weight();
    const Divided& divided = divided_.at({job.user, job.is_young});
    return std::max<std::uint64_t>(1, divided.sum / divided.jobs);
  }

  [[nodiscard]] bool is_busy(const Job& job) const {
    return !idle_detection_ || job.idleness->activity() == JobActivity::Busy ||
           kept_busy_.contains(job.id);
  }

  void displace() {
    CoreMap claimed = matrix_.empty_map();
    bool is_any_claimed = false;
    for (const Job* job : active_) {
      if (job->is_stopped()) layout_.displaced.insert(job->id);
      if (!job->is_high() || !is_busy(*job)) continue;
      matrix_.take(claimed, job->cells);
      is_any_claimed = true;
    }
    if (!is_any_claimed) return;
    for (const Job* job : active_) {
      if (job->is_high() || !is_busy(*job) || matrix_.is_free(claimed, job->cells)) continue;
      layout_.displaced.insert(job->id);
    }
  }

  void send_to_background() {
    if (!idle_detection_) return;
    CoreMap wanted = matrix_.empty_map();
    for (const Job* job : active_) {
      if (is_busy(*job) && !layout_.displaced.contains(job->id)) {
        matrix_.take(wanted, job->cells);
      }
    }
    for (const Job* job : active_) {
      const bool is_idle = !is_busy(*job) && !layout_.displaced.contains(job->id);
      if (is_idle && !matrix_.is_free(wanted, job->cells)) layout_.background.insert(job->id);
    }
  }

  void fill_home_rows() {
    std::vector<std::vector<const Job*>> at_home(matrix_.row_count());
    for (const Job* job : active_) {
      if (layout_.background.contains(job->id) || layout_.displaced.contains(job->id)) continue;
      at_home[*matrix_.position(job->home)].push_back(job);
    }
    for (std::size_t position = 0; position < at_home.size(); ++position) {
      if (at_home[position].empty()) continue;
      Weights weights{};
      CoreMap taken = matrix_.empty_map();
      for (const Job* job : at_home[position]) {
        auto& weight = weights.at(job->is_young ? kYoung : kOld);
        weight = std::max(weight, weight_of(*job));
        matrix_.take(taken, job->cells);
        layout_.runs_in[job->id].push_back(layout_.rows.size());
      }
      layout_.rows.push_back({matrix_.row_id(position), 1});
      weights_.push_back(weights);
      taken_.push_back(std::move(taken));
      at_home_.push_back(std::move(at_home[position]));
    }
  }

  // Young jobs together get at least a half of the slices, and older ones at least a quarter, if
  // there are both. Within each of the two the weights count. A row with both has both parts.
  void weigh_ages() {
    Weights sums{};
    for (const Weights& row : weights_) {
      for (const std::size_t age : {kOld, kYoung}) sums.at(age) += row.at(age);
    }
    const auto [old, young] = sums;
    const bool has_both = old > 0 && young > 0;
    const Weights factors = {has_both ? times_to_reach(young, 3 * old) : 1,
                             has_both ? times_to_reach(old, young) : 1};
    for (std::size_t row = 0; row < layout_.rows.size(); ++row) {
      std::uint64_t weight = 0;
      for (const std::size_t age : {kOld, kYoung})
        weight += weights_[row].at(age) * factors.at(age);
      layout_.rows[row].weight =
          static_cast<std::uint32_t>(std::clamp(weight, std::uint64_t{1}, kMostWeight));
    }
  }

  static std::uint64_t times_to_reach(std::uint64_t wanted, std::uint64_t has) {
    return std::max<std::uint64_t>(1, (wanted + has - 1) / has);
  }

  void unify() {
    for (std::size_t row = 0; row < layout_.rows.size(); ++row) {
      for (const Job* guest : guests_of(row)) {
        if (!matrix_.is_free(taken_[row], guest->cells)) continue;
        matrix_.take(taken_[row], guest->cells);
        layout_.runs_in[guest->id].push_back(row);
      }
    }
    for (auto& [id, rows] : layout_.runs_in) std::sort(rows.begin(), rows.end());
  }

  // Returns the jobs of other rows that could run in this one too: young ones first, then the least
  // share for its weight.
  [[nodiscard]] std::vector<const Job*> guests_of(std::size_t row) const {
    std::vector<std::tuple<bool, double, JobId, const Job*>> guests;
    for (std::size_t home = 0; home < at_home_.size(); ++home) {
      if (home == row) continue;
      for (const Job* job : at_home_[home]) {
        if (!matrix_.is_free(taken_[row], job->cells)) continue;
        const auto rows = static_cast<double>(layout_.runs_in.at(job->id).size());
        const auto weight = static_cast<double>(weight_of(*job));
        guests.emplace_back(!job->is_young, rows / weight, job->id, job);
      }
    }
    std::sort(guests.begin(), guests.end());
    std::vector<const Job*> out;
    for (const auto& [is_old, share, id, job] : guests) out.push_back(job);
    return out;
  }

  const Matrix& matrix_;
  bool idle_detection_;
  std::vector<const Job*> active_;                      // without steps, which run with their jobs
  std::set<JobId> kept_busy_;                           // jobs with a busy step
  std::map<std::pair<UserId, bool>, Divided> divided_;  // [user, is young]
  std::vector<Weights> weights_;                        // [row]
  std::vector<CoreMap> taken_;                          // [row]
  std::vector<std::vector<const Job*>> at_home_;        // [row]
  CycleLayout layout_;
};

}  // namespace

bool CycleLayout::has(RowId row) const {
  return std::any_of(rows.begin(), rows.end(),
                     [row](const WeightedRow& r) { return r.row == row; });
}

std::vector<RowId> CycleLayout::rows_of(JobId job) const {
  std::vector<RowId> out;
  const auto found = runs_in.find(job);
  if (found == runs_in.end()) return out;
  for (const std::size_t index : found->second) out.push_back(rows[index].row);
  return out;
}

bool may_fill(const Job& job, const ClusterConfig& config) {
  if (!config.fill || !config.can_fill || !job.is_active()) return false;
  if (job.request.no_fill || job.is_exclusive() || job.shares_channel) return false;
  if (!job.cells.unit_bits.empty()) return false;
  const auto queue = job.is_urgent() ? base::Queue::High : job.request.queue;
  return std::ranges::find(config.fill_queues, queue) != config.fill_queues.end();
}

CycleLayout lay_out(const JobTable& jobs, const Matrix& matrix, bool idle_detection) {
  return LayoutMaker(jobs, matrix, idle_detection).make();
}

}  // namespace score::gang
