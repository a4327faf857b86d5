// Ranks that lose a peer abort, and that is often reported before the peer's own end, because a
// process that ends closes its connections first. So a task that vanished without a call of abort
// explains the end better than tasks that aborted. Among equals the earliest does, by the clocks.
// Tasks that are killed because of the end are reported later than its cause.
#include "gang/job/outcome.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace score::gang {

using base::JobState;

namespace {

constexpr int kSignalBase = 128;
constexpr int kMaxSignal = 64;
constexpr int kKilledExit = kSignalBase + SIGKILL;

}  // namespace

int code_of(const base::TaskExit& exit) {
  return exit.signal != 0 ? kSignalBase + exit.signal : exit.code;
}

void JobOutcome::expect(std::vector<std::uint32_t> member_of_rank) {
  *this = {};
  for (const std::uint32_t member : member_of_rank) ranks_.push_back({member, std::nullopt});
}

void JobOutcome::restore(std::optional<JobState> ending, int exit_code,
                         std::vector<std::string> reasons) {
  ending_ = ending;
  exit_code_ = exit_code;
  reasons_ = std::move(reasons);
}

// A task that a signal ended after the end was decided was killed by the scheduler.
JobOutcome::Recorded JobOutcome::record(std::size_t member, const base::TaskExit& exit) {
  const std::uint32_t rank = exit.rank.value();
  const bool is_its = rank < ranks_.size() && ranks_[rank].member == member;
  if (!is_its || exit.code < 0 || exit.code > 255 || exit.signal < 0 || exit.signal > kMaxSignal) {
    return Recorded::Impossible;
  }
  if (ranks_[rank].exit) return Recorded::Known;
  ranks_[rank].exit = exit;
  const bool is_failure = ending_ == JobState::Failed || ending_ == JobState::OutOfMemory;
  const bool counts = !ending_ || (is_failure && exit.signal == 0);
  if (counts) exit_code_ = std::max(exit_code_, code_of(exit));
  return Recorded::New;
}

bool JobOutcome::has_all_exits_of(std::size_t member) const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [&](const Rank& r) { return r.member != member || r.exit; });
}

std::vector<base::TaskExit> JobOutcome::exits() const {
  std::vector<base::TaskExit> out;
  for (const Rank& rank : ranks_) {
    if (rank.exit) out.push_back(*rank.exit);
  }
  return out;
}

std::optional<JobOutcome::Failed> JobOutcome::failed() const {
  std::optional<Failed> first;
  for (const Rank& rank : ranks_) {
    if (!rank.exit || code_of(*rank.exit) == 0) continue;
    if (!first) first = Failed{rank.member, *rank.exit, 0};
    ++first->count;
  }
  return first;
}

void JobOutcome::decide(JobState final_state, std::string reason, int exit_code) {
  ending_ = final_state;
  exit_code_ = exit_code;
  reasons_.clear();
  if (!reason.empty()) reasons_.push_back(std::move(reason));
}

void JobOutcome::decide(TaskFailure failure) {
  if (!memory_.empty()) {
    return decide(JobState::OutOfMemory, memory_, std::max(exit_code_, failure.exit_code));
  }
  decide(JobState::Failed, failure.reason, std::max(exit_code_, failure.exit_code));
  failure_ = std::move(failure);
}

void JobOutcome::explain(TaskFailure failure) {
  if (!failure_ || failure_->is_loss > failure.is_loss) return;
  const bool is_earlier = failure.at != base::TimePoint() && failure.at < failure_->at;
  if (failure_->is_loss == failure.is_loss && !is_earlier) return;
  reasons_ = {failure.reason};
  exit_code_ = std::max(exit_code_, failure.exit_code);
  failure_ = std::move(failure);
}

bool JobOutcome::blame_loss(const std::string& reason, base::TimePoint since) {
  const bool is_consequence = ending_ == JobState::Failed && failure_ &&
                              since != base::TimePoint() && failure_->at >= since;
  if (!is_consequence) return false;
  ending_ = JobState::NodeFailed;
  failure_.reset();
  reasons_.insert(reasons_.begin(), reason);
  return true;
}

bool JobOutcome::blame_memory(const std::string& reason) {
  if (memory_.empty()) memory_ = reason;
  if (ending_ != JobState::Failed) return false;
  decide(JobState::OutOfMemory, memory_, exit_code_);
  failure_.reset();
  return true;
}

void JobOutcome::decide_by_exits(std::string failures) {
  if (!memory_.empty()) {
    return decide(JobState::OutOfMemory, memory_, exit_code_ != 0 ? exit_code_ : kKilledExit);
  }
  decide(exit_code_ == 0 ? JobState::Completed : JobState::Failed, std::move(failures), exit_code_);
}

void JobOutcome::cancel_requeue(JobState final_state, const std::string& reason, int exit_code) {
  ending_ = final_state;
  exit_code_ = exit_code;
  reasons_.insert(reasons_.begin(), reason);
}

JobState JobOutcome::close() {
  SCORE_ASSERT(ending_, "the end was decided");
  return *std::exchange(ending_, std::nullopt);
}

}  // namespace score::gang
