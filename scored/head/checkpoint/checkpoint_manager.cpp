#include "scored/head/checkpoint/checkpoint_manager.hpp"

#include "base/limits.hpp"
#include "base/os/log.hpp"
#include "base/text.hpp"
#include "proto/client.pb.h"
#include "scored/head/checkpoint/checkpoint_steps.hpp"
#include "scored/head/store/settings.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace score::head {
namespace {

// To hold the tasks, in addition to the time until the job has stopped, which is a slice or two.
constexpr Duration kForHolding = 4s;
constexpr Duration kForWriting = 10min;
constexpr Duration kForOtherSteps =
    30s;  // less than a shepherd waits before it continues its tasks
constexpr Duration kForTheWay = 500ms;

// Names sort by time, so that a set finds those before it.
std::string name_of_set() {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(wall_now());
  const auto day = std::chrono::floor<std::chrono::days>(now);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(now - day);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}.{:03}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count(),
                     time.subseconds().count());
}

}  // namespace

void CheckpointManager::Answers::add_silent_nodes(const std::string& name) {
  if (reason.empty()) reason = name + ": did not answer in time";
}

Result<gang::JobView> CheckpointManager::view_of(JobId id) const {
  const Job* job = head_.jobs.find(id);
  if (job == nullptr || job->ended) return fail(Errc::WrongState, "job {} has ended", id);
  if (job->info.step_of != JobId(0)) {
    return fail(Errc::Unsupported, "job {} is a step, which cannot be saved yet", id);
  }
  if (!job->steps->active.empty()) {
    return fail(Errc::WrongState, "job {} has running steps, which cannot be saved yet", id);
  }
  auto view = head_.runner.view(id);
  if (!view) return view;
  if (view->state == JobState::Running) return view;
  if (view->state == JobState::Suspended) {  // criu cannot read frozen tasks
    return fail(Errc::WrongState, "job {} is suspended; resume it first", id);
  }
  return fail(Errc::WrongState, "job {} is {}, not running", id, gang::to_string(view->state));
}

Result<std::vector<NodeId>> CheckpointManager::nodes_of(const gang::JobView& view) const {
  std::vector<NodeId> nodes;
  for (std::size_t i = 0; i < view.nodes.size(); ++i) {
    const bool has_tasks = view.request.allocation ? i == 0 : view.tasks_on_node[i] > 0;
    if (!has_tasks) continue;
    if (head_.links.link(view.nodes[i]).connection == nullptr) {
      return fail(Errc::WrongState, "{} is not connected", head_.links.name(view.nodes[i]));
    }
    nodes.push_back(view.nodes[i]);
  }
  return nodes;
}

Status CheckpointManager::save(const std::string& asker, const wire::Checkpoint& request,
                               Done done) {
  const JobId job(request.job());
  const auto view = view_of(job);
  if (!view) return view.error();
  if (saves_.contains(job)) return fail(Errc::Busy, "job {} is being saved; try again", job);
  auto nodes = nodes_of(*view);
  if (!nodes) return nodes.error();
  auto actions = head_.runner.cluster().set_stopped(job, true, head_.runner.now());
  if (!actions) return actions.error();
  head_.runner.perform(*std::move(actions));
  Save& save = saves_[job];
  save.attempt = view->attempt;
  save.nodes = *std::move(nodes);
  save.asker = asker;
  save.set = name_of_set();
  save.ends_job = request.stop();
  save.is_held = true;
  save.began = save.stopped = head_.runner.now();
  save.done = std::move(done);
  order(job, wire::HOLD);
  return {};
}

void CheckpointManager::order(JobId job, wire::CheckpointStep step) {
  const Save& save = saves_.at(job);
  Duration limit = step == wire::SAVE ? kForWriting : kForOtherSteps;
  if (step == wire::HOLD) limit = 2 * head_.runner.cluster().config().quantum + kForHolding;
  const auto question = [&](std::uint64_t tag) {
    wire::CheckpointOrder message;
    message.set_tag(tag);
    message.set_attempt(save.attempt.value());
    message.set_step(step);
    message.set_set(save.set);
    message.set_limit_ns(limit.count());
    if (step != wire::COMPLETE) return message;
    wire::Submit submission;
    if (const Job* known = head_.jobs.find(job)) {
      submission.mutable_resources()->ParseFromString(known->info.resources.str());
    }
    message.set_submission(submission.SerializeAsString());
    return message;
  };
  auto nodes = save.nodes;
  if (step == wire::COMPLETE) nodes.resize(1);
  const auto answered = [this, job, step](const Answers& answers) { done(job, step, answers); };
  const auto asked = poll_.ask(save.asker, nodes, question, {{}, answered, limit + kForTheWay});
  if (!asked) done(job, step, {.reason = asked.error().context(), .directory = {}});
}

// After a failure the tasks continue.
void CheckpointManager::done(JobId job, wire::CheckpointStep step, const Answers& answers) {
  Save& save = saves_.at(job);
  wire::Checkpointed& answer = save.answer;
  const TimePoint now = head_.runner.now();
  const bool is_last = step >= wire::GO_ON;
  if (answer.reason().empty() && !answers.reason.empty() && step < wire::GO_ON) {
    answer.set_reason(answers.reason);
  }
  if (step == wire::HOLD) save.stopped = now;
  if (step == wire::HOLD) release(job, save);
  answer.set_image_bytes(answer.image_bytes() + answers.image_bytes);
  if (step == wire::COMPLETE && answers.reason.empty()) {
    answer.set_set(answers.directory);
    keep_set(job, answers.directory);
    answer.set_total_ns((now - save.began).count());
  }
  if (is_last) {
    answer.set_stopped_ns((now - save.stopped).count());
    return finish(job);
  }
  order(job, next_step(step, !answer.reason().empty(), save.ends_job));
}

// The tasks are stopped by themselves now; criu needs their cgroups thawed. A job that has ended in
// the meantime needs nothing more.
void CheckpointManager::release(JobId job, Save& save) {
  if (!std::exchange(save.is_held, false)) return;
  auto actions = head_.runner.cluster().set_stopped(job, false, head_.runner.now());
  if (actions) head_.runner.perform(*std::move(actions));
}

// The job must find the set if it is launched again, also by another head.
void CheckpointManager::keep_set(JobId job, const std::string& directory) {
  std::erase_if(last_sets_, [&](const auto& entry) {
    const Job* known = head_.jobs.find(entry.first);
    return known == nullptr || known->ended;
  });
  const Job* known = head_.jobs.find(job);
  if (directory.empty() || known == nullptr || known->ended) return;
  last_sets_[job] = directory;
  head_.commits.add(checkpoint_setting(job, directory));
}

std::string CheckpointManager::last_set(JobId job) const {
  const auto found = last_sets_.find(job);
  return found == last_sets_.end() ? "" : found->second;
}

// The question comes from a process of the job's user. It is what the user may ask, too.
void CheckpointManager::save_as_wanted(NodeId node, AttemptId attempt) {
  const JobId id = job_of(attempt);
  const Job* job = head_.jobs.find(id);
  const auto view = head_.runner.view(id);
  const bool is_its_own = job != nullptr && view && view->attempt == attempt &&
                          std::ranges::find(view->nodes, node) != view->nodes.end();
  if (!is_its_own) return;
  wire::Checkpoint request;
  request.set_job(id.value());
  const auto note = [id](const std::string& why) {
    log_notice("Did not save job in time", kv("job", id), kv("err", why));
  };
  const auto begun = save(fmt::format("{}", job->info.user), request, [note](auto saved) {
    if (!saved.reason().empty()) note(saved.reason());
  });
  if (!begun && !begun.error().is(Errc::Busy)) note(begun.error().message());
}

void CheckpointManager::finish(JobId job) {
  Save save = std::move(saves_.at(job));
  saves_.erase(job);
  save.done(std::move(save.answer));
}

void CheckpointManager::reply(NodeId node, wire::CheckpointReply&& message) {
  if (message.wanted() != 0) return save_as_wanted(node, AttemptId(message.wanted()));
  poll_.answer(message.tag(), node, [&](Answers& answers) {
    answers.image_bytes += message.image_bytes();
    if (!message.directory().empty()) {
      answers.directory = escape_terminal(message.directory(), limits::kMaxPathBytes);
    }
    if (message.reason().empty() || !answers.reason.empty()) return;
    answers.reason = fmt::format("{}: {}", head_.links.name(node),
                                 escape_terminal(message.reason(), limits::kMaxErrorTextBytes));
  });
}

}  // namespace score::head
