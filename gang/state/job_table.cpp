#include "gang/state/job_table.hpp"

#include "base/assert.hpp"

namespace score::gang {

using base::Errc;
using base::fail;

Job& JobTable::add(JobId id, UserId user, const base::ResourceRequest& request,
                   const Shape& shape) {
  Job& job = jobs_[id];
  job.id = id;
  job.user = user;
  job.request = request;
  job.is_near = request.switches > 0;
  job.shape = shape;
  job.wait = next_wait_key(request, id);
  ++submissions_;
  ++live_count_;
  return job;
}

void JobTable::forget(JobId id) {
  const Job* job = find(id);
  if (job != nullptr && base::is_final(job->state)) jobs_.erase(id);
}

const Job* JobTable::find(JobId id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

Job* JobTable::find(JobId id) {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

base::Result<Job*> JobTable::live(JobId id) {
  Job* job = find(id);
  if (job == nullptr) return fail(Errc::NotFound, "no job {}", id);
  if (base::is_final(job->state)) return fail(Errc::WrongState, "job {} has ended", id);
  return job;
}

WaitKey JobTable::next_wait_key(const base::ResourceRequest& request, JobId id) const {
  const auto queue = request.queue == base::Queue::Urgent ? 0U
                     : request.queue == base::Queue::High ? 1U
                                                          : 2U;
  return {static_cast<std::uint8_t>(queue),
          0,
          -std::int64_t{request.priority},
          0,
          submissions_ + 1,
          id};
}

void JobTable::change(Job& job, JobEvent event, Step& step) {
  const auto next = next_state(job.state, event);
  SCORE_ASSERT(next, "job={} state={} event={}", job.id, to_string(job.state), to_string(event));
  set_state(job, *next);
  step.job_changed(job.id);
}

void JobTable::end(Job& job, Step& step) {
  SCORE_ASSERT(job.state == JobState::Completing, "job={} state={}", job.id, to_string(job.state));
  set_state(job, job.outcome.edit().close());
  job.ended = step.now;
  --live_count_;
  step.job_changed(job.id);
}

void JobTable::restore_state(Job& job, JobState state) {
  SCORE_ASSERT(!base::is_final(state), "job={} state={}", job.id, to_string(state));
  set_state(job, state);
}

void JobTable::set_state(Job& job, JobState state) {
  job.state = state;
  const auto keep = [&](std::set<JobId>& set, bool member) {
    is_changed_ |= member ? set.insert(job.id).second : set.erase(job.id) > 0;
  };
  keep(active_, job.is_active());
  keep(managed_, job.is_managed());
}

base::Result<void> JobTable::check() const {
  std::size_t live = 0;
  for (const auto& [id, job] : jobs_) {
    const bool is_final = base::is_final(job.state);
    live += is_final ? 0 : 1;
    const bool needs_place = job.state == JobState::Launching || job.is_managed();
    const bool needs_none = is_final || job.state == JobState::Pending;
    if ((needs_place && !job.placed) || (needs_none && job.placed)) {
      return fail(Errc::WrongState, "job {} is {} and {}", id, to_string(job.state),
                  job.placed ? "placed" : "not placed");
    }
    if (job.placed && job.members->remaining() == 0 && job.steps->empty()) {
      return fail(Errc::WrongState, "job {} has a place and no member", id);
    }
    if (job.outcome->ending().has_value() != (job.state == JobState::Completing)) {
      return fail(Errc::WrongState, "job {} is {}, which does not fit its end", id,
                  to_string(job.state));
    }
    if (active_.contains(id) != job.is_active() || managed_.contains(id) != job.is_managed()) {
      return fail(Errc::WrongState, "job {} is {} and listed otherwise", id, to_string(job.state));
    }
  }
  if (live != live_count_) return fail(Errc::WrongState, "{} jobs live, not {}", live, live_count_);
  return {};
}

}  // namespace score::gang
