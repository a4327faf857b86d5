// The part of the shepherd that has to do with PM networks.
#include "base/exit_codes.hpp"
#include "scored/job/plan/pm_choice.hpp"
#include "scored/job/shepherd/shepherd.hpp"

#include <utility>

namespace score::shepherd {

namespace {

using namespace std::chrono_literals;

constexpr base::Duration kLookAgain = 20ms;

bool speaks_for_pm(const Plan& plan) {
  return plan.prepare.node_index() == 0 && plan.spec.net() == wire::LaunchSpec::PM;
}

template <class Message>
std::optional<Message> parse(const proto::InFrame& frame) {
  Message message;
  if (!message.ParseFromString(frame.payload)) return std::nullopt;
  return message;
}

}  // namespace

void Shepherd::make_network() {
  const auto& prepare = plan_->prepare;
  NetworkHub::Handlers handlers;
  handlers.wanted = [this] {
    wire::NetworkRequest request;
    request.set_attempt(plan_->prepare.attempt());
    link_.send(request);
  };
  handlers.tell = [this](const wire::ShepherdNetwork& network) { link_.send(network); };
  handlers.pass = [this](const wire::PassedDescriptors& message, auto fds) {
    link_.send_descriptors(message, std::move(fds));
  };
  handlers.note = [this](std::uint32_t task, const std::string& text) { note(task, text); };
  handlers.broken = [this](const std::string& why) {
    abort_job(plan_->rank_of(0), kExitError, why);
  };
  network_.emplace(loop_,
                   NetworkHub::Job{prepare.attempt(),
                                   prepare.node_index(),
                                   {prepare.tasks_on_node().begin(), prepare.tasks_on_node().end()},
                                   plan_->distribution()},
                   std::move(handlers));
}

// What a script starts, or an interpreter loads, was not looked at before the job began. Now a task
// has begun to initialise an MPI library, so the library is loaded. The job's first node speaks for
// all, once.
void Shepherd::look_at_mpi(std::uint32_t task) {
  if (!speaks_for_pm(*plan_) || has_looked_at_mpi_ || task >= plan_->local_tasks()) return;
  const auto pid = tasks_->pids()[task];
  if (pid == 0) {  // its MPI was quicker than the spawner's word of it
    loop_.after(kLookAgain, [this, task] { look_at_mpi(task); });
    return;
  }
  has_looked_at_mpi_ = true;
  if (is_linked_to_mpi(*plan_)) return;
  const auto objection = ofi_objection_of_task(static_cast<pid_t>(pid));
  has_objected_ = !objection.empty();
  if (has_objected_) note(task, fmt::format("--net=pm is not used: {}", objection));
}

// This may be all that tells.
void Shepherd::say_if_pm_was_not_used() {
  if (!speaks_for_pm(*plan_) || !network_ || network_->has_served()) return;
  if (abort_ || is_killed_ || has_objected_) return;
  note(0, "--net=pm: no task here has opened PM; is the MPI library built on OFI (libfabric)?");
}

void Shepherd::on_network(const proto::InFrame& frame, std::vector<base::UniqueFd> descriptors) {
  if (!network_) return;
  if (frame.type == proto::FrameType::ShepherdNetwork) {
    if (auto network = parse<wire::ShepherdNetwork>(frame)) network_->prepare(std::move(*network));
  } else if (frame.type == proto::FrameType::NetworkFailed) {
    if (auto failed = parse<wire::NetworkFailed>(frame)) network_->fail(failed->reason());
  } else if (auto message = parse<wire::PassedDescriptors>(frame)) {
    network_->take_sockets(*message, std::move(descriptors));
  }
}

}  // namespace score::shepherd
