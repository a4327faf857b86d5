#pragma once
// A shepherd (process A) runs one attempt of a job on one node, as the user. It checks the plan,
// has the tasks started, owns their pidfds, streams and PMI, and reports; it outlives the node
// daemon.
//
// Signals from the node daemon go to the tasks (the ranks' first processes), not to the processes
// that they started. When every task has ended, all processes that they left behind are killed, and
// the rest of the pipes' contents is sent. Done then reports all exits when the front end has taken
// the output, or after a second. A node daemon that resumes receives Done again, until End, but not
// before all output is taken.

#include "scored/job/plan/plan.hpp"
#include "scored/job/scratch/volume.hpp"
#include "scored/job/shepherd/daemon_link.hpp"
#include "scored/job/shepherd/job_end.hpp"
#include "scored/job/shepherd/mpi_servers.hpp"
#include "scored/job/shepherd/mpi_watch.hpp"
#include "scored/job/shepherd/network_hub.hpp"
#include "scored/job/shepherd/output_sender.hpp"
#include "scored/job/spawn/spawn_hub.hpp"
#include "scored/job/tasks/event_loop.hpp"
#include "scored/job/tasks/input.hpp"
#include "scored/job/tasks/script_file.hpp"
#include "scored/job/tasks/spawn_client.hpp"
#include "scored/job/tasks/task_stdio.hpp"
#include "scored/job/tasks/task_table.hpp"

#include <optional>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

namespace score::shepherd {

struct ShepherdOptions {
  base::UniqueFd listener;     // for connections of the node daemon
  base::UniqueFd spawner;      // socket to the spawner (process B)
  base::UniqueFd signals;      // signalfd of SIGCHLD and SIGTERM, which are blocked
  std::vector<uid_t> allowed;  // users that may connect
};

class Shepherd {
 public:
  // The loop must outlive the shepherd.
  Shepherd(EventLoop& loop, OutputPump output, ShepherdOptions options);
  base::Status start();  // errors: errno codes; the loop then runs until all is done

 private:
  enum class Phase {
    Preparing,  // no plan yet
    Prepared,   // checked; waits for Start
    Starting,   // the spawner forks
    Running,    // every task has a process, or never will
    Draining,   // every task ended; leftovers are killed, output is sent
    Done,       // everything is reported; waits for End
  };

  void watch_spawner(SpawnClient::Handlers& spawning);
  void on_frame(const proto::InFrame& frame, std::vector<base::UniqueFd> descriptors);
  void on_network(const proto::InFrame& frame, std::vector<base::UniqueFd> descriptors);
  void on_prepare(const std::string& payload);
  void on_start();
  void on_signal(int signal);
  void on_resume();
  void on_sweep(const wire::ShepherdSweep& order);
  void on_input(const wire::TaskInput& input);
  void on_lost();
  void on_signal_descriptor();

  void refuse(int exit_code, const std::string& reason);
  void make_servers();
  base::Status offer_pmix(bool is_optional);
  base::Status make_script();
  base::Status make_volume();
  void start_volume();
  void on_pmix_failed(const std::string& why);
  void finish_prepare();
  void send_ready();
  void make_parts();
  void make_network();
  void make_spawning();
  void abort_job(const MpiServers::Abort& abort);
  void note(std::uint32_t task, const std::string& text);

  base::Result<std::vector<base::UniqueFd>> open_task(std::uint32_t task);
  void on_forked(std::uint32_t task, pid_t pid);
  void on_all_forked();
  void on_spawn_failed(const base::Error& why);
  void on_relay(const proto::InFrame& frame);
  void start_world(Plan&& world);
  void fork_world();
  void end_world(const std::string& reason);
  void end_spawning();

  // Programs of any node may start tasks, so this node takes part until no program can.
  [[nodiscard]] bool has_room() const { return spawning_ && !is_room_closed_; }

  void send_started();
  void reap();
  void on_task_ended(std::uint32_t task, const wire::TaskExit& exit);
  void send_input_taken();

  void drain();
  void kill_leftovers();
  void remove_leftovers();

  // Returns true if no task is left and all their output was read.
  [[nodiscard]] bool has_drained() const { return leftovers_are_dead_ && output_.is_done(); }

  void finish_if_drained();
  void send_done();
  void quit();  // kills remaining processes and ends the loop
  void check_reachable();

  EventLoop& loop_;
  DaemonLink link_;
  SpawnClient spawner_;
  base::UniqueFd signals_;
  OutputSender output_;
  InputFeeder input_;
  std::uint64_t input_taken_ = 0;  // not reported yet
  Phase phase_ = Phase::Preparing;
  pid_t group_ = 0;  // the spawner's pid: process group of the tasks; 0: not known yet
  bool ready_owed_ = false;

  // The following members exist from Prepare on. The parts refer to the plan.
  std::optional<Plan> plan_;
  std::optional<MpiServers> servers_;
  std::optional<TaskTable> tasks_;
  std::optional<TaskStdio> stdio_;
  std::optional<NetworkHub> network_;
  std::optional<MpiWatch> mpi_watch_;
  std::optional<SpawnHub> spawning_;  // if programs may start tasks
  std::optional<Plan> starting_;      // the world that is being started here
  bool is_room_closed_ = false;
  std::optional<ScriptFile> script_;  // of a batch job, on the node of its task
  std::optional<JobVolume> volume_;
  bool awaits_volume_ = false;                // the volume is the only part missing
  std::optional<wire::ShepherdAbort> abort_;  // the first one

  std::set<int> early_signals_;  // for tasks that the spawner has not forked yet
  bool is_killed_ = false;       // before all tasks were forked
  base::WallTime began_{};       // start of the tasks, in file system time
  std::optional<LeftoverKill> leftover_kill_;
  bool leftovers_are_dead_ = false;
  bool is_resumed_ = false;
  bool awaits_taking_ = false;  // the front end has not taken all of the output
  bool is_output_overdue_ = false;
  EventLoop::TimerId leftover_timer_ = 0;
  std::optional<LostDaemon> lost_daemon_;
  EventLoop::TimerId reachable_timer_ = 0;
};

}  // namespace score::shepherd
