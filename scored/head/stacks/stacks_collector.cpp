#include "scored/head/stacks/stacks_collector.hpp"

#include "base/limits.hpp"
#include "base/model/distribution.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <utility>

namespace score::head {
namespace {

// For reading, in addition to the time until the job has stopped, which is a slice or two.
constexpr Duration kForReading = 4s;
constexpr Duration kForTheWay = 500ms;

}  // namespace

void StacksCollector::Parts::add_problem(const std::string& node, const std::string& text) {
  for (const std::uint32_t rank : ranks_on[node]) tree.add_problem(rank, node + ": " + text);
}

Result<gang::JobView> StacksCollector::job_of(JobId id) const {
  const Job* job = head_.jobs.find(id);
  if (job == nullptr || job->ended) return fail(Errc::WrongState, "job {} has ended", id);
  const auto& steps = job->steps->active;
  if (steps.size() > 1) {
    std::string numbers;
    for (const JobId step : steps) {
      if (!numbers.empty()) numbers += ", ";
      numbers += fmt::format("{}", step);
    }
    return fail(Errc::WrongState, "job {} has {} steps; name one of the jobs {}", id, steps.size(),
                numbers);
  }
  auto view = head_.runner.view(steps.empty() ? id : *steps.begin());
  if (!view) return view;
  const bool has_tasks = view->state == JobState::Running || view->state == JobState::Suspended;
  if (!has_tasks) {
    return fail(Errc::WrongState, "job {} is {}, not running", id, gang::to_string(view->state));
  }
  return view;
}

Result<std::vector<NodeId>> StacksCollector::nodes_of(const gang::JobView& view,
                                                      const std::string& ranks,
                                                      Parts& parts) const {
  std::vector<std::uint32_t> tasks_on = view.tasks_on_node;
  if (view.request.allocation) std::fill(tasks_on.begin(), tasks_on.end(), 0);
  if (view.request.allocation && !tasks_on.empty()) tasks_on.front() = 1;
  for (const std::uint32_t tasks : tasks_on) parts.tasks += tasks;
  std::set<std::uint32_t> wanted;
  if (!ranks.empty()) {
    auto parsed = proto::parse_ranks(ranks, std::max(parts.tasks, 1U));
    if (!parsed) return parsed.error();
    wanted = *std::move(parsed);
  }
  std::vector<NodeId> nodes;
  for (std::uint32_t i = 0; i < view.nodes.size(); ++i) {
    const std::string& name = head_.links.name(view.nodes[i]);
    for (const std::uint32_t rank : ranks_of_node(tasks_on, i, view.request.distribution)) {
      if (ranks.empty() || wanted.contains(rank)) parts.ranks_on[name].insert(rank);
    }
    if (!parts.ranks_on.contains(name)) continue;
    const auto& link = head_.links.link(view.nodes[i]);
    if (link.connection == nullptr) {
      parts.add_problem(name, "is not connected");
    } else if (!link.vitals.reads_stacks) {
      parts.add_problem(name, "its node daemon is of an older release");
    } else {
      nodes.push_back(view.nodes[i]);
    }
  }
  return nodes;
}

Status StacksCollector::read(const std::string& asker, const wire::GetStacks& request, Done done) {
  const auto view = job_of(JobId(request.job()));
  if (!view) return view.error();
  const JobId gang = view->request.inside != JobId(0) ? view->request.inside : view->id;
  if (stopped_.contains(gang)) {
    return fail(Errc::Busy, "the stacks of job {} are being read; try again", request.job());
  }
  Parts first;
  const auto nodes = nodes_of(*view, request.ranks(), first);
  if (!nodes) return nodes.error();
  auto actions = head_.runner.cluster().set_stopped(view->id, true, head_.runner.now());
  if (!actions) return actions.error();
  stopped_.insert(gang);
  head_.runner.perform(*std::move(actions));

  const Duration limit = 2 * head_.runner.cluster().config().quantum + kForReading;
  const auto question = [&](std::uint64_t tag) {
    wire::StacksRequest message;
    message.set_tag(tag);
    message.set_attempt(view->attempt.value());
    message.set_ranks(request.ranks());
    message.set_threads(request.threads());
    message.set_limit_ns(limit.count());
    return message;
  };
  const auto finished = [this, gang, began = head_.runner.now(),
                         done = std::move(done)](Parts parts) {
    finish(gang, began, parts);
    done(std::move(parts.answer));
  };
  auto asked = poll_.ask(asker, *nodes, question, {std::move(first), finished, limit + kForTheWay});
  if (!asked) {
    Parts none;
    finish(gang, head_.runner.now(), none);
  }
  return asked;
}

// A job that has ended in the meantime needs nothing more.
void StacksCollector::finish(JobId job, TimePoint began, Parts& parts) {
  stopped_.erase(job);
  auto actions = head_.runner.cluster().set_stopped(job, false, head_.runner.now());
  if (actions) head_.runner.perform(*std::move(actions));
  *parts.answer.mutable_tree() = parts.tree.to_wire(proto::StackTree::kMaxJobBytes);
  parts.answer.set_tasks(parts.tasks);
  parts.answer.set_total_ns((head_.runner.now() - began).count());
}

void StacksCollector::reply(NodeId node, wire::StacksReply&& message) {
  poll_.answer(message.tag(), node, [&](Parts& parts) {
    const std::string& name = head_.links.name(node);
    const std::size_t count = parts.ranks_on[name].size();
    if (!message.reason().empty()) {
      parts.add_problem(name, escape_terminal(message.reason(), limits::kMaxErrorTextBytes));
    } else if (!parts.tree.merge(message.tree(), parts.tasks, count)) {
      parts.add_problem(name, "its stacks cannot be read");
    }
    for (auto& state : *message.mutable_states()) {
      const auto ranks = parts.ranks_on.find(name);
      const bool is_there = ranks != parts.ranks_on.end() && ranks->second.erase(state.rank()) > 0;
      if (is_there) *parts.answer.add_states() = std::move(state);
    }
    parts.answer.set_stop_ns(std::max(parts.answer.stop_ns(), message.stopped_ns()));
  });
}

}  // namespace score::head
