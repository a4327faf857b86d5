// This module is tested by tests/integration/run/test_checkpoint.py.
#include "scored/job/checkpoint/checkpoint_part.hpp"

#include "base/exit_codes.hpp"
#include "base/model/machine_fault.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <signal.h>
#include <sys/socket.h>
#include <utility>

namespace score::shepherd {

namespace {

// Returns how often the shepherd of this node asks for a save. The first node with tasks completes
// the sets, so it knows when the next one is due.
std::optional<base::Duration> period_of(const Plan& plan) {
  const auto& tasks = plan.prepare.tasks_on_node();
  const auto first = std::ranges::find_if(tasks, [](std::uint32_t count) { return count > 0; });
  if (static_cast<std::uint32_t>(first - tasks.begin()) != plan.prepare.node_index()) return {};
  const auto text = find_variable(plan.spec, plan.spec.programs(0), "SCORE_CHECKPOINT_EVERY");
  const auto seconds = text ? base::parse_number<std::uint32_t>(*text).value_or(0) : 0;
  if (seconds == 0) return {};
  return std::chrono::seconds(seconds);
}

std::string unsaved_feature(const Plan& plan) {
  const auto& spec = plan.spec;
  if (spec.pty()) return "a terminal (--pty)";
  if (plan.can_spawn()) return "tasks that programs start (--spawn)";
  if (plan.prepare.scratch_bytes() > 0) return "a volume (--scratch)";
  if (spec.mpi() == wire::LaunchSpec::PMIX || spec.mpi() == wire::LaunchSpec::BOTH) {
    return "PMIx (--mpi)";
  }
  return {};
}

}  // namespace

CheckpointPart::CheckpointPart(EventLoop& loop, Answer answer, Sockets sockets)
    : loop_(loop),
      answer_(std::move(answer)),
      is_possible_(static_cast<bool>(sockets.saver)),
      restores_(static_cast<bool>(sockets.restorer)),
      saver_(loop, std::move(sockets.saver)),
      restorer_(loop, std::move(sockets.restorer)) {}

std::optional<Refusal> CheckpointPart::prepare(Plan& plan) {
  if (!plan.can_checkpoint() && !plan.restores()) return {};
  const bool fits = is_possible_ && plan.can_checkpoint() && plan.restores() == restores_;
  if (!fits) return Refusal{kExitError, "--checkpoint: the launcher made no namespaces", false};
  if (const auto feature = unsaved_feature(plan); !feature.empty()) {
    return Refusal{kExitError, "--checkpoint: a job with " + feature + " cannot be saved", false};
  }
  if (plan.spec.mpi() == wire::LaunchSpec::AUTO) plan.spec.set_mpi(wire::LaunchSpec::PMI1);
  if (!plan.restores() || plan.local_tasks() == 0) return {};
  auto image = JobCheckpoint::check(plan);
  if (!image) {
    return Refusal{kExitError, image.error().with_context("cannot restore").message(), false};
  }
  image_ = *std::move(image);
  return {};
}

void CheckpointPart::begin(Job job) {
  plan_ = &job.plan;
  if (!is_possible_) return;
  checkpoint_.emplace(JobCheckpoint::Parts{
      loop_, job.plan, saver_, std::move(job.parent), std::move(job.tasks), std::move(job.why_not),
      std::move(job.is_quiet), std::move(job.describe), answer_});
  if (const auto every = period_of(job.plan)) checkpoint_->keep_saving(*every);
}

void CheckpointPart::opened(std::uint32_t task, std::span<const base::UniqueFd> fds) {
  if (checkpoint_) checkpoint_->opened(task, fds);
}

void CheckpointPart::order(const wire::ShepherdCheckpoint& order) {
  if (checkpoint_) return checkpoint_->order(order);
  wire::ShepherdCheckpointed answer;
  answer.set_tag(order.tag());
  answer.set_reason("it was not started with --checkpoint");
  answer_(answer);
}

void CheckpointPart::restore(Restore restore) {
  auto pair = base::make_socket_pair(SOCK_STREAM);
  if (!pair) return restore.failed(pair.error());
  const auto own = std::make_shared<base::UniqueFd>(std::move(pair->first));
  const auto done = [this, own, spawner = &restore.spawner, arrived = restore.arrived,
                     failed = restore.failed](const base::Status& status) {
    restorer_.close();
    if (!status) return failed(status.error());
    if (auto adopted = spawner->adopt(std::move(*own), image_->tasks); !adopted) {
      return failed(adopted.error());
    }
    const auto processes = processes_below(image_->parent);
    if (auto good = arrived(processes); !good) return failed(good.error());
    for (const pid_t process : processes) kill(process, SIGCONT);
  };
  JobCheckpoint::restore(*plan_, *image_, restorer_,
                         {restore.open, std::move(pair->second), restore.sockets}, done);
}

}  // namespace score::shepherd
