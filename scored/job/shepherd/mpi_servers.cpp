// Tested by shepherd_test.cpp and pmix_flow_test.cpp.
#include "scored/job/shepherd/mpi_servers.hpp"

#include "base/exit_codes.hpp"
#include "base/os/log.hpp"
#include "scored/job/plan/process_mapping.hpp"
#include "scored/job/pmix/client_env.hpp"
#include "scored/job/pmix/exchange.hpp"

#include <utility>

namespace score::shepherd {

using namespace std::string_view_literals;

namespace {

// What a node without PMIx contributes to the first fence of a job whose tasks may use PMIx. The
// head concatenates what nodes contribute, and libpmix writes nothing like it.
constexpr auto kLackMark = "\0scored: no PMIx here\0"sv;
constexpr std::uint64_t kFirstFence = 1;

}  // namespace

MpiServers::MpiServers(EventLoop& loop, DaemonLink& link, const Plan& plan, Handlers handlers)
    : loop_(loop), link_(link), plan_(plan), handlers_(std::move(handlers)) {}

void MpiServers::start_pmi() {
  PmiJob job{.name = plan_.key_space(),
             .size = plan_.size,
             .local_tasks = plan_.local_tasks(),
             .process_mapping = process_mapping(plan_.nodes_of_ranks()),
             .keep_going = plan_.spec.keep_going(),
             .apps = plan_.apps};
  PmiHub::Handlers handlers;
  handlers.fence = [this](const PmiActions::Fence& fence) { send_fence(fence, false); };
  handlers.abort = [this](const PmiActions::Abort& abort) {
    handlers_.abort({plan_.rank_of(abort.task), abort.code, abort.message});
  };
  handlers.note = handlers_.note;
  handlers.initialised = handlers_.initialised;
  pmi_.emplace(loop_, std::move(job), std::move(handlers));
}

void MpiServers::make_pmix() {
  PmixProcess::Handlers handlers;
  handlers.ready = handlers_.pmix_ready;
  handlers.failed = handlers_.pmix_failed;
  handlers.fence = [this](const PmiActions::Fence& fence) { send_fence(fence, true); };
  handlers.relay = [this](wire::JobRelay& message) {
    message.set_attempt(plan_.prepare.attempt());
    link_.send(message);
  };
  handlers.initialised = handlers_.initialised;
  handlers.abort = [this](const wire::PmixAbort& abort) {
    handlers_.abort({abort.rank(), abort.code(), abort.message()});
  };
  handlers.spawn_refused = [this, is_told = false](std::uint32_t task) mutable {
    const bool is_first = task < plan_.local_tasks() && !std::exchange(is_told, true);
    if (is_first) handlers_.note(task, kSpawnIsRefused);
  };
  pmix_.emplace(loop_, std::move(handlers));
}

void MpiServers::start_pmix(std::string_view prepare) {
  make_pmix();
  if (auto started = pmix_->start(prepare); !started) {
    handlers_.pmix_failed(started.error().message());
  }
}

base::Result<std::vector<std::string>> MpiServers::offer_pmix(std::string prepare) {
  make_pmix();
  const auto port = pmix_->offer(std::move(prepare));
  if (port) return pmix::client_environment(plan_, pmix_->directory(), *port);
  pmix_.reset();
  return port.error();
}

void MpiServers::lack_pmix(std::string why) {
  if (plan_.prepare.tasks_on_node_size() < 2) return;
  lack_ = std::move(why);
  send_fence({kFirstFence, std::string(kLackMark)}, true);
}

void MpiServers::abort_for_lack() {
  handlers_.abort({plan_.rank_of(0), kExitError, lack_ + ", but tasks of other nodes use it"});
}

base::Status MpiServers::connect(std::uint32_t task, std::vector<base::UniqueFd>& descriptors) {
  if (!pmi_) return {};
  auto socket = pmi_->connect(task);
  if (!socket) return socket.error();
  descriptors.push_back(std::move(*socket));
  return {};
}

void MpiServers::task_ended(std::uint32_t task, bool has_failed) {
  if (pmi_) pmi_->task_ended(task, has_failed);
  if (pmix_ && !has_failed && pmix_->was_initialised(task)) {
    handlers_.abort({plan_.rank_of(task), 1, "ended without MPI_Finalize", true});
  }
}

void MpiServers::send_fence(const PmiActions::Fence& fence, bool pmix) {
  wire::FenceEnter enter;
  enter.set_attempt(plan_.prepare.attempt());
  enter.set_sequence(fence.sequence);
  enter.set_key_values(fence.key_values);
  enter.set_pmix(pmix);
  link_.send(enter);
}

void MpiServers::fence_done(const wire::FenceDone& done) {
  if (done.pmix()) {
    if (!lack_.empty()) return abort_for_lack();
    if (done.key_values().find(kLackMark) != std::string::npos) return;  // that node ends the job
    if (pmix_) pmix_->fence_done(done.sequence(), done.key_values());
    return;
  }
  if (!pmi_) return;
  auto taken = pmi_->fence_done(done.sequence(), done.key_values());
  if (!taken) base::log_warning("ignore fence", base::kv("err", taken.error()));
}

// The server ends with the node's last task; other nodes may still ask it.
void MpiServers::relay(const std::string& payload) {
  if (!lack_.empty()) return abort_for_lack();
  if (!pmix_) return;
  pmix_->begin();
  if (pmix_->is_running()) return pmix_->relay(payload);
  wire::JobRelay message;
  if (!message.ParseFromString(payload)) return;
  auto answer = pmix::answer_of_the_departed(message.message());
  if (!answer) return;
  message.set_attempt(plan_.prepare.attempt());
  *message.mutable_message() = std::move(*answer);
  link_.send(message);
}

void MpiServers::resume() {
  if (pmi_ && pmi_->pending_fence()) send_fence(*pmi_->pending_fence(), false);
  if (!lack_.empty()) send_fence({kFirstFence, std::string(kLackMark)}, true);
  if (pmix_ && pmix_->pending_fence()) send_fence(*pmix_->pending_fence(), true);
}

void MpiServers::clean_up() {
  if (pmix_) pmix_->clean_up();
}

}  // namespace score::shepherd
