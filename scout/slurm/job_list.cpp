#include "scout/slurm/job_list.hpp"

#include "base/model/model.hpp"
#include "scout/session/words.hpp"
#include "scout/slurm/words/job_words.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace score::scout::slurm {

namespace {

using Ids = std::set<std::uint64_t>;

Result<wire::JobList> list_all(HeadLink& head, bool all_users, bool ended) {
  wire::ListJobs request;
  request.set_all_users(all_users);
  request.set_finished(ended);
  request.set_expand(true);
  return list_jobs(head, std::move(request));
}

// Adds the jobs of the accounting that the request selects.
Status add_ended(HeadLink& head, wire::GetAccounting request, std::int64_t until_ns, Ids& ids) {
  for (;;) {
    const auto page = head.ask<wire::Accounting>(request);
    if (!page) return page.error();
    for (const auto& row : page->rows()) {
      const bool is_wanted = request.job() == 0 || row.array_job() == request.job();
      const bool is_record = row.array_job() == row.job();
      if (is_wanted && !is_record && row.ended_wall_ns() < until_ns) ids.insert(row.job());
    }
    if (!page->more() || page->rows().empty()) return {};
    const auto& last = page->rows(page->rows_size() - 1);
    if (last.ended_wall_ns() >= until_ns) return {};
    request.set_since_wall_ns(last.ended_wall_ns());
    request.set_after_job(last.job());
  }
}

// Adds the tasks of the array that are or were jobs.
Status add_tasks(HeadLink& head, std::uint64_t array, Ids& ids) {
  const auto active = list_all(head, true, false);
  if (!active) return active.error();
  for (const auto& job : active->jobs()) {
    if (job.array_job() == array && job.job() != array) ids.insert(job.job());
  }
  wire::GetAccounting request;
  request.set_all_users(true);
  request.set_job(array);
  return add_ended(head, std::move(request), INT64_MAX, ids);
}

Result<FoundJobs> find(HeadLink& head, const Ids& ids) {
  return find_jobs(head, {ids.begin(), ids.end()});
}

using Found = std::map<std::uint64_t, wire::JobStatus>;

// The record of an array runs while one of its tasks does; its row is about the tasks that wait.
void show_waiting_tasks(wire::JobStatus& array) {
  array.set_state(static_cast<std::uint32_t>(base::JobState::Pending));
  array.clear_nodes();
  array.clear_started_wall_ns();
  array.clear_elapsed_ns();
}

void add_rows(wire::JobList& list, Found& found) {
  for (auto& job : *list.mutable_jobs()) {
    if (!job.array().waiting().empty() && !is_final_state(job.state())) show_waiting_tasks(job);
    if (job.step_of() == 0 && has_row(job)) found.insert_or_assign(job.job(), std::move(job));
  }
}

Jobs values_of(Found&& found) {
  Jobs jobs;
  for (auto& [id, job] : found) jobs.push_back(std::move(job));
  return jobs;
}

}  // namespace

std::vector<std::string> split_jobs(std::string_view list) {
  std::vector<std::string> words;
  std::string word;
  int depth = 0;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, {}));
  };
  for (const char c : list) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c != ',' || depth > 0) {
      word += c;
    } else {
      end_word();
    }
  }
  end_word();
  return words;
}

Result<Jobs> queued_jobs(HeadLink& head, bool ended) {
  auto list = list_all(head, true, ended);
  if (!list) return list.error();
  Found found;
  add_rows(*list, found);
  return values_of(std::move(found));
}

Result<NamedJobs> named_jobs(HeadLink& head, const std::vector<std::string>& words) {
  NamedJobs named;
  Found found;
  Ids ids;
  for (const std::string& word : words) {
    const std::string whole = word.substr(0, word.find('.'));
    const auto read = parse_job_word(whole);
    if (!read) return read.error();
    if (read->tasks.empty()) {
      ids.insert(read->job);
      continue;
    }
    auto tasks = find_words(head, {whole});
    if (!tasks) return tasks.error();
    for (const auto& job : tasks->list.jobs()) {
      if (job.array_job() != job.job()) ids.insert(job.job());
    }
    add_rows(tasks->list, found);
    std::ranges::move(tasks->missing, std::back_inserter(named.missing));
  }
  auto whole = find(head, ids);
  if (!whole) return whole.error();
  std::ranges::move(whole->missing, std::back_inserter(named.missing));
  Ids tasks;
  for (const auto& job : whole->list.jobs()) {
    if (job.array_job() == 0 || job.array_job() != job.job()) continue;
    if (auto added = add_tasks(head, job.job(), tasks); !added) return added.error();
  }
  add_rows(whole->list, found);
  auto more = find(head, tasks);
  if (!more) return more.error();
  add_rows(more->list, found);
  named.jobs = values_of(std::move(found));
  return named;
}

Result<Jobs> recorded_jobs(HeadLink& head, const RecordQuery& query) {
  const auto active = list_all(head, query.all_users, false);
  if (!active) return active.error();
  Ids ids;
  for (const auto& job : active->jobs()) {
    if (job.submitted_wall_ns() < query.until_ns) ids.insert(job.job());
  }
  wire::GetAccounting request;
  request.set_all_users(query.all_users);
  request.set_since_wall_ns(query.since_ns);
  if (auto added = add_ended(head, std::move(request), query.until_ns, ids); !added) {
    return added.error();
  }
  auto list = find(head, ids);
  if (!list) return list.error();
  Found found;
  add_rows(list->list, found);
  return values_of(std::move(found));
}

}  // namespace score::scout::slurm
