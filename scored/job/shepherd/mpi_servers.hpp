#pragma once
// Manages the servers by which the tasks' MPI libraries find their peers: PMI-1 in this process,
// PMIx in a separate process (scored-pmix), or both. It also handles their fences, which span the
// job's nodes.

#include "scored/job/plan/plan.hpp"
#include "scored/job/pmi/pmi_hub.hpp"
#include "scored/job/pmix/pmix_process.hpp"
#include "scored/job/shepherd/daemon_link.hpp"
#include "scored/job/shepherd/fence_part.hpp"
#include "scored/job/spawn/peer_exchange.hpp"
#include "scored/job/spawn/spawn_hub.hpp"
#include "scored/job/tasks/event_loop.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace score::shepherd {

class MpiServers {
 public:
  struct Abort {
    std::uint32_t rank = 0;
    std::int32_t code = 1;
    std::string message;
    bool left = false;  // the task ended without MPI_Finalize
  };

  struct Handlers {
    std::function<void(const std::string& why)> pmix_failed;
    std::function<void()> pmix_ended;
    std::function<void(const Abort&)> abort;
    std::function<void(std::uint32_t task, const std::string& text)> note;
    std::function<void(std::uint32_t task)> initialised;  // its MPI library has initialised
    // A further process has connected as this task, which has not called MPI_Finalize.
    std::function<void(std::uint32_t task)> connected_twice;
    // The task requests to start programs. This is answered by `done`, at any time.
    std::function<void(std::uint32_t task, PmiSpawn&& what, SpawnHub::Done done)> spawn;
    // The PMIx server knows the world, or `reason` says why it cannot.
    std::function<void(std::uint32_t world, const std::string& reason)> world_ready;
  };

  // All arguments must outlive this object.
  MpiServers(EventLoop& loop, DaemonLink& link, const Plan& plan, Handlers handlers);

  // Starts the PMIx server when a task connects, which a script may never do, or at begin_pmix().
  // Returns the variables by which the tasks find it. prepare: bytes of ShepherdPrepare. Errors:
  // errno codes. Later errors are reported by pmix_failed.
  base::Result<std::vector<std::string>> offer_pmix(std::string prepare);

  // Starts the offered server as soon as the spawner runs.
  void begin_pmix() { pmix_->begin(); }

  // Returns what the spawner needs for the offered server; empty if there is none.
  std::vector<base::UniqueFd> take_pmix_descriptors();
  // Records that there is no PMIx here, for the reason `why`. This matters only if tasks of other
  // nodes use PMIx: the job is then aborted instead of waiting for this node for ever.
  void lack_pmix(std::string why);
  void start_pmi();

  // Adds the descriptors that the task inherits. Errors: errno codes.
  base::Status connect(std::uint32_t task, std::vector<base::UniqueFd>& descriptors);
  void task_ended(std::uint32_t task, bool has_failed);

  // Announces that tasks of another world are about to start on any of the nodes. Returns true if
  // world_ready will be called.
  bool add_world(const Plan& world);

  // ---- checkpoints; the job has no PMIx then

  // Returns true if no task waits for an answer.
  [[nodiscard]] bool is_quiet() const { return !pmi_ || pmi_->is_quiet(); }

  // The state for an image: as PmiServer::saved() and restore().
  [[nodiscard]] std::string saved() const { return pmi_ ? pmi_->saved() : std::string(); }

  base::Status restore(std::string_view text) {
    return pmi_ && !text.empty() ? pmi_->restore(text) : base::Status();
  }

  void fence_done(const wire::FenceDone& done);
  void relay(const wire::JobRelay& message);  // from another node
  // Handles a new connection to the node daemon: fences that are not done are sent again.
  void resume();
  // Removes files. Call it only when all processes of the job have ended.
  void clean_up();

 private:
  void make_pmix();
  void make_peers();
  void serve_world(const Plan& world);
  void pmi_fence(std::uint32_t world, const PmiActions::Fence& fence);
  void ask_about(PmiActions::Name&& name);
  void spawn_over_pmi(PmiActions::Spawn&& spawn);
  void spawn_over_pmix(const wire::PmixSpawn& spawn);
  void end_pmi_fence(std::uint32_t world, std::uint64_t sequence, std::string_view key_values);
  void send_fence(const PmiActions::Fence& fence, bool pmix);
  void send_step(wire::FenceEnter message);
  void report_lack();
  void end_pmix_fence(std::uint64_t sequence, std::string_view data);

  EventLoop& loop_;
  DaemonLink& link_;
  const Plan& plan_;
  Handlers handlers_;
  std::optional<PeerExchange> peers_;                           // of PMI-1
  std::map<std::uint32_t, std::vector<std::uint32_t>> worlds_;  // [world]: its tasks in the job
  std::optional<PmiHub> pmi_;
  std::optional<PmixProcess> pmix_;
  bool has_refused_spawn_ = false;
  FencePart pmi_part_{false};
  FencePart pmix_part_{true};
  std::string lack_;  // why there is no PMIx here; empty: it is not needed, or there is
};

}  // namespace score::shepherd
