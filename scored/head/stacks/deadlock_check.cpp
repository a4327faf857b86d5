#include "scored/head/stacks/deadlock_check.hpp"

#include <utility>
#include <vector>

namespace score::head {
namespace {

// Chosen: a job in the background that polls runs about every 50 ms.
constexpr Duration kBetween = std::chrono::seconds{1};
constexpr Duration kRetry = std::chrono::seconds{2};  // while somebody else reads its stacks

}  // namespace

void DeadlockCheck::changed(JobId job) {
  const auto view = head_.runner.view(job);
  const std::uint32_t suspicion = view ? view->suspicion : 0;
  const auto found = checks_.find(job);
  if (found != checks_.end() && found->second.suspicion == suspicion) return;
  if (found != checks_.end()) checks_.erase(found);
  if (suspicion == 0) return;
  const TimePoint now = head_.runner.now();
  checks_[job] = {.suspicion = suspicion, .due = now};
  head_.alarm.at(now);
}

std::optional<TimePoint> DeadlockCheck::next_deadline() const {
  std::optional<TimePoint> next;
  for (const auto& [job, check] : checks_) {
    if (check.due && (!next || *check.due < *next)) next = check.due;
  }
  return next;
}

void DeadlockCheck::tick(TimePoint now) {
  std::vector<JobId> due;
  for (const auto& [job, check] : checks_) {
    if (check.due && *check.due <= now) due.push_back(job);
  }
  for (const JobId job : due) {
    const auto found = checks_.find(job);
    if (found != checks_.end()) read(job, found->second);
  }
}

void DeadlockCheck::read(JobId job, Check& check) {
  check.due.reset();
  wire::GetStacks request;
  request.set_job(job.value());
  request.set_threads(true);
  const std::uint32_t suspicion = check.suspicion;
  const auto asked = stacks_.read("deadlock check", request, [=, this](const wire::Stacks& stacks) {
    take(job, suspicion, stacks);
  });
  if (asked) return;
  const auto found = checks_.find(job);  // reading may have changed the job
  if (found == checks_.end()) return;
  if (!asked.error().is(Errc::Busy)) return answer(job, true);
  found->second.due = head_.runner.now() + kRetry;
  head_.alarm.at(found->second.due);
}

void DeadlockCheck::take(JobId job, std::uint32_t suspicion, const wire::Stacks& stacks) {
  const auto found = checks_.find(job);
  if (found == checks_.end() || found->second.suspicion != suspicion) return;
  Check& check = found->second;
  WaitPicture picture(stacks);
  if (!picture.is_still()) return answer(job, false);
  if (check.first) return answer(job, picture == *check.first);
  check.first = std::move(picture);
  check.due = head_.runner.now() + kBetween;
  head_.alarm.at(check.due);
}

void DeadlockCheck::answer(JobId job, bool is_deadlock) {
  const auto node = checks_.extract(job);
  if (!is_deadlock) log_info("Rejected a suspected deadlock", kv("job", job));
  head_.runner.perform(head_.runner.cluster().confirm_deadlock(job, node.mapped().suspicion,
                                                               is_deadlock, head_.runner.now()));
}

}  // namespace score::head
