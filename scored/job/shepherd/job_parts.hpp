#pragma once
// The parts of a shepherd that serve one job: its plan, the tasks, and the servers, files and
// network of the tasks. They exist from Prepare on. This struct makes and connects them; the
// shepherd uses them directly.

#include "base/exit_codes.hpp"
#include "scored/job/checkpoint/checkpoint_part.hpp"
#include "scored/job/plan/checks.hpp"
#include "scored/job/plan/plan.hpp"
#include "scored/job/scratch/volume.hpp"
#include "scored/job/shepherd/daemon_link.hpp"
#include "scored/job/shepherd/mpi_servers.hpp"
#include "scored/job/shepherd/mpi_watch.hpp"
#include "scored/job/shepherd/network_hub.hpp"
#include "scored/job/shepherd/output_sender.hpp"
#include "scored/job/shepherd/shepherd_agent.hpp"
#include "scored/job/spawn/spawn_hub.hpp"
#include "scored/job/stacks/stack_query.hpp"
#include "scored/job/tasks/event_loop.hpp"
#include "scored/job/tasks/input.hpp"
#include "scored/job/tasks/script_file.hpp"
#include "scored/job/tasks/spawn_client.hpp"
#include "scored/job/tasks/task_stdio.hpp"
#include "scored/job/tasks/task_table.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace score::shepherd {

struct JobParts {
  using Event = ShepherdAgent::Event;

  struct Services {  // all must outlive the parts
    EventLoop& loop;
    DaemonLink& link;
    SpawnClient& spawner;
    HelperClient& helpers;
    OutputSender& output;
    InputFeeder& input;
    CheckpointPart& checkpoint;
  };

  struct Handlers {
    std::function<void(const ShepherdAgent::Input&)> event;
    std::function<void(const MpiServers::Abort&)> abort;
  };

  JobParts(Services given, Handlers handlers);

  // Checks the plan and makes the parts that the tasks' environment depends on. Returns the reason
  // if the job cannot start here.
  std::optional<Refusal> prepare(const std::string& payload);
  // Describes the plan, after prepare().
  [[nodiscard]] ShepherdAgent::Job traits() const;
  // Sends the plan to the spawner and makes the other parts. Errors: as SpawnClient::prepare().
  base::Status make_tasks();

  // Returns the descriptors that the task inherits. Errors: errno codes.
  base::Result<std::vector<base::UniqueFd>> open_task(std::uint32_t task);

  // ---- checkpoints

  // Returns why the tasks cannot be saved now; empty: they can.
  [[nodiscard]] std::string why_not_saved() const;
  // Returns true if no task waits for its servers.
  [[nodiscard]] bool is_quiet() const;
  // Adds the state of the tasks' servers and network to their image.
  void describe(NodeImage& image) const;
  // Restores the tasks of an image instead of starting them. `failed` is called at most once.
  void restore_tasks(const std::function<void(const base::Error&)>& failed);

  // Carries out an action that concerns only the parts.
  void carry_out(const ShepherdAgent::Action& action);
  // Handles a frame for one of the parts. Returns false for any other frame.
  bool take_frame(const proto::InFrame& frame, std::vector<base::UniqueFd>& descriptors);
  // takes_worlds: as ShepherdAgent.
  void relay(const wire::JobRelay& message, bool takes_worlds);

  Services services;
  Handlers up;
  std::optional<Plan> plan;  // the other parts refer to it
  std::optional<MpiServers> servers;
  std::optional<TaskTable> tasks;
  std::optional<TaskStdio> stdio;
  std::optional<NetworkHub> network;
  std::optional<MpiWatch> mpi_watch;
  std::optional<SpawnHub> spawning;  // if programs may start tasks
  std::optional<Plan> starting;      // the world that is being started here
  std::optional<ScriptFile> script;  // of a batch job, on the node of its task
  std::optional<JobVolume> volume;
  std::optional<StackQuery> stacks;  // once somebody has asked

 private:
  void note(std::uint32_t task, const std::string& text);
  void restore_with(std::function<void(const base::Error&)> failed);
  base::Status take_restored(std::span<const pid_t> processes);

  // Aborts the job for a reason that is no task's own.
  void abort(const std::string& why) { up.abort({plan->rank_of(0), kExitError, why}); }

  base::Status make_script();
  base::Status make_volume();
  void start_volume();
  void make_servers();
  base::Status offer_pmix(bool is_optional);
  void make_network();
  void make_spawning();
  void task_ended(std::uint32_t task, const wire::TaskExit& exit);
  void send_started();
  base::Status make_restored_script();
  void read_stacks(const wire::ShepherdStacks& request);
  void fail_start(bool is_gone, const std::string& why);
  void give_up(int code, int signal);  // ends all tasks that never got a process
  void carry_out_spawning(const ShepherdAgent::Action& action);
  void fork_world();
  void end_world(const std::string& reason);  // empty: its tasks run
};

}  // namespace score::shepherd
