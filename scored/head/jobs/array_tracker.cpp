#include "scored/head/jobs/array_tracker.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <utility>

namespace score::head {

Result<ArrayTasks> parse_array(std::string_view text) {
  ArrayTasks array;
  const auto percent = text.find('%');
  if (percent != text.npos) {
    const auto at_once = parse_number<std::uint32_t>(text.substr(percent + 1));
    if (!at_once || *at_once == 0) {
      return fail(Errc::Malformed,
                  "array {}: % must be followed by the number of tasks that run at a time",
                  escape_terminal(text, 80));
    }
    array.at_once = *at_once;
  }
  auto tasks = IndexSet::parse(text.substr(0, percent), kMaxArrayTasks);
  if (!tasks) return tasks.error().with_context("array {}", escape_terminal(text, 80));
  array.tasks = std::move(*tasks);
  return array;
}

std::string text_of(const ArrayTasks& array) {
  std::string text = array.tasks.text();
  if (array.at_once > 0 && !text.empty()) text += fmt::format("%{}", array.at_once);
  return text;
}

ArrayTracker::Array* ArrayTracker::find(JobId array) {
  const auto found = arrays_.find(array);
  return found == arrays_.end() ? nullptr : &found->second;
}

const ArrayTracker::Array* ArrayTracker::find(JobId array) const {
  const auto found = arrays_.find(array);
  return found == arrays_.end() ? nullptr : &found->second;
}

void ArrayTracker::add(JobId array, ArrayTasks tasks, std::uint32_t next, std::uint32_t total) {
  Array& added = arrays_[array];
  added.tasks = std::move(tasks);
  added.next = next;
  added.total = total;
}

void ArrayTracker::count_ended(JobId id, std::uint32_t completed, std::uint32_t broken) {
  Array* array = find(id);
  if (array == nullptr) return;
  array->completed += completed;
  array->broken += broken;
}

void ArrayTracker::set_open(JobId id, bool is_open) {
  if (Array* array = find(id)) array->is_open = is_open;
}

void ArrayTracker::take(JobId id) {
  Array* array = find(id);
  const auto task = next_task(id);
  if (array == nullptr || !task) return;
  array->is_storing = true;
  array->next = *task + 1;
}

bool ArrayTracker::became(JobId id, std::uint32_t task, JobId job, bool is_placed) {
  Array* array = find(id);
  if (array == nullptr) return false;
  array->is_storing = false;
  array->active[task] = {job, is_placed};
  if (!is_placed) array->in_queue = task;
  return !std::exchange(array->is_dropped, false);
}

// The task that was taken becomes the next one again.
void ArrayTracker::not_stored(JobId id) {
  Array* array = find(id);
  if (array == nullptr || !array->is_storing) return;
  array->is_storing = array->is_dropped = false;
  --array->next;
}

void ArrayTracker::placed(JobId id, std::uint32_t task) {
  Array* array = find(id);
  if (array == nullptr) return;
  const auto found = array->active.find(task);
  if (found == array->active.end()) return;
  found->second.is_placed = true;
  if (array->in_queue == task) array->in_queue.reset();
}

void ArrayTracker::ended(JobId id, std::uint32_t task, JobState final_state) {
  Array* array = find(id);
  if (array == nullptr || array->active.erase(task) == 0) return;
  if (array->in_queue == task) array->in_queue.reset();
  if (final_state == JobState::Completed) {
    ++array->completed;
  } else if (final_state != JobState::Cancelled) {
    ++array->broken;
  }
}

void ArrayTracker::drop_tasks(JobId id, const IndexSet& tasks) {
  Array* array = find(id);
  if (array == nullptr) return;
  if (array->is_storing && tasks.contains(array->next - 1)) array->is_dropped = true;
  array->tasks.tasks = array->tasks.tasks.without(tasks);
}

// A task that waits in the queue counts as active, because it will soon have a place.
bool ArrayTracker::is_full(const Array& array) {
  return array.tasks.at_once > 0 && array.active.size() >= array.tasks.at_once;
}

std::optional<std::uint32_t> ArrayTracker::next_task(JobId id) const {
  const Array* array = find(id);
  if (array == nullptr || !array->is_open || array->is_storing || array->in_queue) {
    return std::nullopt;
  }
  if (is_full(*array)) return std::nullopt;
  return array->tasks.tasks.next(array->next);
}

bool ArrayTracker::is_done(JobId id) const {
  const Array* array = find(id);
  return array != nullptr && !array->is_storing && array->active.empty() &&
         !array->tasks.tasks.next(array->next);
}

std::vector<JobId> ArrayTracker::arrays() const {
  std::vector<JobId> ids;
  for (const auto& [id, array] : arrays_) ids.push_back(id);
  return ids;
}

ArrayTasks ArrayTracker::rest(JobId id) const {
  const Array* array = find(id);
  if (array == nullptr) return {};
  return {array->tasks.tasks.rest(array->next), array->tasks.at_once};
}

ArrayTracker::View ArrayTracker::view(JobId id) const {
  View view;
  const Array* array = find(id);
  if (array == nullptr) return view;
  const ArrayTasks waiting = rest(id);
  view.waiting = text_of(waiting);
  const auto active = static_cast<std::uint32_t>(array->active.size());
  const std::uint32_t in_queue = array->in_queue ? 1 : 0;
  Counts& counts = view.counts;
  counts.waiting = waiting.tasks.size() + (array->is_storing ? 1 : 0) + in_queue;
  counts.running = active - in_queue;
  counts.completed = array->completed;
  // Failed tasks are not counted one by one, so a restart of the head cannot miss any.
  const std::uint32_t known = counts.waiting + counts.running + counts.completed;
  counts.failed = std::max(array->total, known) - known;
  counts.broken = std::min(array->broken, counts.failed);
  if (array->in_queue) view.in_queue = array->active.at(*array->in_queue).job;
  view.is_full = is_full(*array) && !waiting.tasks.empty();
  return view;
}

std::map<std::uint32_t, JobId> ArrayTracker::jobs(JobId id, const IndexSet* tasks) const {
  std::map<std::uint32_t, JobId> jobs;
  const Array* array = find(id);
  if (array == nullptr) return jobs;
  for (const auto& [task, active] : array->active) {
    if (tasks == nullptr || tasks->contains(task)) jobs[task] = active.job;
  }
  return jobs;
}

}  // namespace score::head
