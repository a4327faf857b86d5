#include "scored/head/jobs/arrays.hpp"

#include "base/exit_codes.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "proto/convert/convert.hpp"
#include "scored/head/store/settings.hpp"

#include <algorithm>
#include <utility>

namespace score::head {
namespace {

constexpr std::size_t kMostWidth = 10;

}  // namespace

// ---- events -------------------------------------------------------------------------------------

void Arrays::add(const Job& array, bool waits) {
  const JobId id = array.info.id;
  auto tasks = parse_array(array.rest->tasks);
  if (!tasks) {
    log_error("Cannot read the tasks of an array", kv("job", id), kv("err", tasks.error()));
    tasks = ArrayTasks();
  }
  tracker_.add(id, std::move(*tasks), array.rest->next, array.rest->total);
  if (const auto ended = head_.reader.ended_tasks(id)) {
    tracker_.count_ended(id, ended->completed, ended->broken);
  } else {
    log_error("Cannot read how the tasks of an array ended", kv("job", id),
              kv("err", ended.error()));
  }
  tracker_.set_open(id, !waits && !array.is_held);
}

void Arrays::add_task(const Job& task) {
  const bool is_placed = task.progress.state != JobState::Pending;
  tracker_.became(task.info.array, task.info.task, task.info.id, is_placed);
}

void Arrays::open(Job& array) {
  tracker_.set_open(array.info.id, array.waits.empty() && !array.is_held);
  settle(array.info.id);
}

void Arrays::hold_changed(Job& array) {
  const JobId id = array.info.id;
  if (const auto waiting = tracker_.view(id).in_queue) {
    gang::Cluster& cluster = head_.runner.cluster();
    auto actions = array.is_held ? cluster.hold(*waiting, head_.runner.now())
                                 : cluster.release(*waiting, head_.runner.now());
    if (actions) head_.runner.perform(std::move(*actions));
  }
  open(array);
}

void Arrays::began(const Job& task) {
  if (!task.info.is_task()) return;
  tracker_.placed(task.info.array, task.info.task);
  Job* array = head_.jobs.find(task.info.array);
  if (array == nullptr || array->ended) return;
  if (array->progress.started == WallTime() && task.progress.started != WallTime()) {
    array->progress.started = task.progress.started;
    array->progress.start_mark = task.progress.start_mark;
    array->happened.add(NoticeKind::Begin);
  }
  settle(task.info.array);
}

void Arrays::ended(const Job& job) {
  if (job.info.is_array()) return tracker_.forget(job.info.id);
  if (!job.info.is_task()) return;
  tracker_.ended(job.info.array, job.info.task, job.progress.state);
  settle(job.info.array);
}

void Arrays::settle_all() {
  for (const JobId id : tracker_.arrays()) settle(id);
}

void Arrays::settle(JobId id) {
  Job* array = head_.jobs.find(id);
  if (array == nullptr || array->ended) return;
  if (tracker_.is_done(id)) return finish(*array);
  if (const auto task = tracker_.next_task(id)) make_job(*array, *task);
  head_.runner.touch(id);
  head_.runner.perform({});
}

void Arrays::finish(Job& array) {
  const ArrayTracker::Counts counts = tracker_.view(array.info.id).counts;
  const std::uint32_t all = counts.failed + counts.completed;
  if (!array.ends_as && counts.failed == 0) {
    array.ends_as = JobState::Completed;
    array.exit_code = kExitOk;
  } else if (!array.ends_as && counts.broken == 0) {
    array.ends_as = JobState::Cancelled;
    array.exit_code = kExitInterrupted;
    array.why_ended = fmt::format("{} of {} tasks were cancelled", counts.failed, all);
  } else if (!array.ends_as) {
    array.ends_as = JobState::Failed;
    array.exit_code = 1;
    array.why_ended = fmt::format("{} of {} tasks did not complete", counts.failed, all);
  }
  life_.kill(array.info.id, gang::EndCause::User);
}

// ---- a task becomes a job -----------------------------------------------------------------------

void Arrays::make_job(Job& array, std::uint32_t task) {
  const JobId id = array.info.id;
  const auto view = head_.runner.view(id);
  if (!view) return;
  ResourceRequest request = view->request;
  request.held = false;
  AddJob add;
  add.info = array.info;
  add.info.id = head_.jobs.take_number();
  add.info.request = RequestId();
  add.info.task = task;
  add.info.resources = proto::to_wire(request).SerializeAsString();
  add.info.conditions = {};
  add.info.immediate = Duration(0);
  add.info.spec_bytes = Bytes(0);
  add.detached = true;
  tracker_.take(id);
  head_.jobs.count_in(add.info);
  std::vector<Change> changes;
  changes.emplace_back(add);
  changes.emplace_back(SaveArray{id, "", task + 1});
  head_.commits.ask(std::move(changes),
                    [this, id, add = std::move(add), request](const Status& stored) mutable {
                      made(id, std::move(add), request, stored);
                    });
}

void Arrays::made(JobId id, AddJob&& add, const ResourceRequest& request, const Status& stored) {
  if (!stored) {
    head_.jobs.count_out(add.info);
    return tracker_.not_stored(id);
  }
  const JobId job = add.info.id;
  const Job* array = head_.jobs.find(id);
  const bool is_wanted = tracker_.became(id, add.info.task, job, false) && array != nullptr &&
                         !array->ends_as && !array->ended;
  ResourceRequest given = request;
  given.held = is_wanted && array->is_held;
  life_.begin(std::move(add), given);
  if (!is_wanted) life_.kill(job, gang::EndCause::User);
  settle(id);
}

// ---- cancel -------------------------------------------------------------------------------------

Result<std::vector<Change>> Arrays::check_cancel(const Job& array, const std::string& tasks,
                                                 const std::string& by) const {
  const JobId id = array.info.id;
  std::vector<Change> changes;
  std::optional<IndexSet> only;
  if (tasks.empty()) {
    changes.emplace_back(cancel_setting(id, by));
  } else {
    auto set = IndexSet::parse(tasks, kMaxArrayTasks);
    if (!set) return set.error().with_context("tasks of job {}", id);
    only = std::move(*set);
    ArrayTasks rest = tracker_.rest(id);
    const std::uint32_t before = rest.tasks.size();
    rest.tasks = rest.tasks.without(*only);
    if (rest.tasks.size() < before) {
      // No task is left; the record is a set of one task that is before `next`.
      const std::string text = rest.tasks.empty() ? "0" : text_of(rest);
      const std::uint32_t next = rest.tasks.empty() ? 1 : rest.tasks.next(0).value_or(0);
      changes.emplace_back(SaveArray{id, text, next});
    }
  }
  for (const auto& [task, job] : tracker_.jobs(id, only ? &*only : nullptr)) {
    changes.emplace_back(cancel_setting(job, by));
  }
  if (changes.empty()) return fail(Errc::NotFound, "no task {} of job {} is left", tasks, id);
  return changes;
}

void Arrays::cancel(Job& array, const std::string& tasks, const std::string& by, Duration grace) {
  const JobId id = array.info.id;
  const std::string why = "cancelled by " + by;
  if (tasks.empty()) return end(array, why, grace);
  const auto only = IndexSet::parse(tasks, kMaxArrayTasks);
  if (!only) return;
  tracker_.drop_tasks(id, *only);
  for (const auto& [task, job] : tracker_.jobs(id, &*only)) {
    Job* found = head_.jobs.find(job);
    if (found != nullptr && !found->ended) {
      life_.terminate(*found, gang::EndCause::User, why, grace);
    }
  }
  settle(id);
}

void Arrays::end(Job& array, const std::string& why, Duration grace) {
  const JobId id = array.info.id;
  if (!array.ends_as) {
    array.ends_as = JobState::Cancelled;
    array.exit_code = kExitInterrupted;
    array.why_ended = why;
  }
  tracker_.drop_tasks(id, tracker_.rest(id).tasks);
  for (const auto& [task, job] : tracker_.jobs(id, nullptr)) {
    Job* found = head_.jobs.find(job);
    if (found != nullptr && !found->ended) {
      life_.terminate(*found, gang::EndCause::User, why, grace);
    }
  }
  settle(id);
}

std::vector<JobId> Arrays::jobs(JobId array, const std::string& tasks) const {
  std::vector<JobId> jobs;
  const auto only = IndexSet::parse(tasks, kMaxArrayTasks);
  if (!only) return jobs;
  for (const auto& [task, job] : tracker_.jobs(array, &*only)) jobs.push_back(job);
  return jobs;
}

// ---- a task's specification ---------------------------------------------------------------------

std::string expand_array_pattern(std::string_view pattern, const JobInfo& task) {
  std::string out;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    out += pattern[at];
    if (pattern[at] != '%' || at + 1 == pattern.size()) continue;
    std::size_t letter = at + 1;
    std::size_t width = 0;
    for (; letter < pattern.size() && pattern[letter] >= '0' && pattern[letter] <= '9'; ++letter) {
      width = std::min(width * 10 + static_cast<std::size_t>(pattern[letter] - '0'), kMostWidth);
    }
    if (letter < pattern.size() && (pattern[letter] == 'a' || pattern[letter] == 'A')) {
      const std::uint64_t number = pattern[letter] == 'a' ? task.task : task.array.value();
      out.pop_back();
      out += fmt::format("{:0{}}", number, width);
      at = letter;
    } else if (pattern[at + 1] == '%') {
      out += '%';
      ++at;
    }
  }
  return out;
}

void fill_array_task(const JobInfo& task, wire::LaunchSpec& spec) {
  spec.set_job(task.id.value());
  const auto add = [&](std::string_view name, std::uint64_t value) {
    spec.add_env(fmt::format("SCORE_{}={}", name, value));
    if (spec.slurm_env()) spec.add_env(fmt::format("SLURM_{}={}", name, value));
  };
  add("ARRAY_JOB_ID", task.array.value());
  add("ARRAY_TASK_ID", task.task);
  spec.set_stdin_path(expand_array_pattern(spec.stdin_path(), task));
  spec.set_stdout_path(expand_array_pattern(spec.stdout_path(), task));
  spec.set_stderr_path(expand_array_pattern(spec.stderr_path(), task));
}

}  // namespace score::head
