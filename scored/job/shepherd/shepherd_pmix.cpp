// Tested by pmix_flow_test.cpp.
#include "base/exit_codes.hpp"
#include "base/os/log.hpp"
#include "scored/job/plan/checks.hpp"
#include "scored/job/plan/elf_needs.hpp"
#include "scored/job/pmix/exchange.hpp"
#include "scored/job/shepherd/shepherd.hpp"

#include <utility>

// The part of the shepherd that has to do with PMIx: whether a job wants it, and its server.

namespace score::shepherd {

void choose_mpi(Plan& plan) {
  if (plan.spec.mpi() != wire::LaunchSpec::AUTO) return;
  const auto path = executable_of(plan.spec);
  const auto needed = path ? needed_libraries(*path) : path.error();
  const bool is_open_mpi = needed && mpi_library_of(*needed) == MpiLibrary::OpenMpi;
  plan.spec.set_mpi(is_open_mpi ? wire::LaunchSpec::PMIX : wire::LaunchSpec::PMI1);
}

void Shepherd::start_pmix() {
  PmixProcess::Handlers handlers;
  handlers.ready = [this](const wire::PmixReady& ready) {
    if (phase_ != Phase::Preparing) return;
    *plan_->prepare.mutable_pmix_env() = ready.env();
    finish_prepare();
  };
  handlers.failed = [this](const std::string& why) { on_pmix_failed(why); };
  handlers.fence = [this](const PmiActions::Fence& fence) { send_fence(fence); };
  handlers.relay = [this](wire::JobRelay& message) {
    message.set_attempt(plan_->prepare.attempt());
    link_.send(message);
  };
  handlers.initialised = [this](std::uint32_t task) { look_at_mpi(task); };
  handlers.abort = [this](const wire::PmixAbort& abort) {
    abort_job(abort.rank(), abort.code(), abort.message());
  };
  handlers.spawn_refused = [this, is_told = false](std::uint32_t task) mutable {
    if (task < plan_->local_tasks() && !std::exchange(is_told, true)) note(task, kSpawnIsRefused);
  };
  pmix_.emplace(loop_, std::move(handlers));
  if (auto started = pmix_->start(prepare_bytes()); !started) {
    on_pmix_failed(started.error().message());
  }
}

// The server ends with the node's last task; other nodes may still ask it.
void Shepherd::on_relay(const std::string& payload) {
  if (!pmix_) return;
  if (pmix_->is_running()) return pmix_->relay(payload);
  wire::JobRelay message;
  if (!message.ParseFromString(payload)) return;
  auto answer = pmix::answer_of_the_departed(message.message());
  if (!answer) return;
  message.set_attempt(plan_->prepare.attempt());
  *message.mutable_message() = std::move(*answer);
  link_.send(message);
}

void Shepherd::on_pmix_failed(const std::string& why) {
  if (phase_ == Phase::Preparing) return refuse(kExitError, why);
  if (phase_ < Phase::Draining) abort_job(plan_->rank_of(0), kExitError, why);
}

void Shepherd::abort_job(std::uint32_t rank, std::int32_t code, const std::string& message,
                         bool left) {
  if (abort_) return;
  abort_.emplace();
  abort_->set_rank(rank);
  abort_->set_code(code);
  abort_->set_message(message);
  abort_->set_left(left);
  abort_->set_asked_ns(base::monotonic_now().time_since_epoch().count());
  link_.send(*abort_);
}

}  // namespace score::shepherd
