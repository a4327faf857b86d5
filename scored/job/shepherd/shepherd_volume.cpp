// This file handles the job's files on the disks of this node: its script, and a part of its
// striped volume.
#include "base/exit_codes.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "scored/job/shepherd/shepherd.hpp"

namespace score::shepherd {

base::Status Shepherd::make_script() {
  if (plan_->spec.script().empty() || plan_->local_tasks() == 0) return {};
  const auto& name = plan_->spec.programs(0).argv(0);
  auto made = ScriptFile::create(plan_->spec.job(), name, plan_->spec.script());
  if (!made) return made.error().with_context("cannot create the script");
  script_.emplace(*std::move(made));
  plan_->prepare.set_script_path(script_->path());
  return {};
}

// A step uses the volume of its job.
base::Status Shepherd::make_volume() {
  auto& prepare = plan_->prepare;
  std::string directory;
  if (prepare.scratch_bytes() > 0) {
    directory =
        VolumeDirectory::path_of(prepare.scratch_path(), base::AttemptId(prepare.attempt()));
  } else if (!plan_->spec.step().empty()) {
    directory = find_volume_of(prepare.scratch_path(), base::JobId(plan_->spec.job()));
  }
  if (directory.empty()) return {};
  prepare.add_scratch_env("SCORE_SCRATCH=" + VolumeDirectory::mount_of(directory));
  prepare.add_scratch_env("PARIO_VOLUME=" + VolumeDirectory::description_of(directory));
  if (prepare.scratch_bytes() == 0) return {};
  start_volume();
  return volume_->begin();
}

void Shepherd::start_volume() {
  JobVolume::Handlers handlers;
  handlers.listens = [this](const wire::ScratchReady& ready) { link_.send(ready); };
  handlers.ready = [this] {
    if (awaits_volume_ && phase_ == Phase::Preparing) finish_prepare();
  };
  handlers.failed = [this](const std::string& why) { refuse(kExitError, why); };
  handlers.sample = [this](const wire::ShepherdScratch& sample) { link_.send(sample); };
  volume_.emplace(loop_, plan_->prepare, plan_->spec.scratch_key(), std::move(handlers));
  constexpr std::string_view kTransport = "PARIO_TRANSPORT=";
  for (const std::string_view variable : plan_->spec.env()) {
    if (!variable.starts_with(kTransport)) continue;
    volume_->set_transport(variable.substr(kTransport.size()));
  }
  plan_->spec.clear_scratch_key();  // the tasks' side does not need it
}

void Shepherd::on_sweep(const wire::ShepherdSweep& order) {
  if (plan_) return;
  const Swept swept = sweep_volumes(order.path());
  wire::ShepherdSwept done;
  done.set_removed(swept.removed);
  done.set_left(base::escape_terminal(swept.left, limits::kMaxErrorTextBytes));
  link_.send(done);
  quit();
}

}  // namespace score::shepherd
