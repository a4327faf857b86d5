#pragma once
// A: one node's shepherd of one attempt, as the user. It checks, has the tasks started, owns their
// pidfds, streams and PMI, and reports; it outlives the node daemon.
//
// Signals of the node daemon go to the tasks (the ranks' first processes), not to what they
// started. When every task has ended, everything they left behind is killed, what is in the pipes
// is sent, and Done tells all exits. Done is told again to a node daemon that resumes, until End.

#include "scored/job/plan/plan.hpp"
#include "scored/job/pmi/pmi_hub.hpp"
#include "scored/job/pmix/pmix_process.hpp"
#include "scored/job/shepherd/daemon_link.hpp"
#include "scored/job/shepherd/network_hub.hpp"
#include "scored/job/tasks/event_loop.hpp"
#include "scored/job/tasks/input.hpp"
#include "scored/job/tasks/output.hpp"
#include "scored/job/tasks/spawn_client.hpp"
#include "scored/job/tasks/task_stdio.hpp"
#include "scored/job/tasks/task_table.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

namespace score::shepherd {

struct ShepherdOptions {
  base::UniqueFd listener;     // the node daemon connects here
  base::UniqueFd spawner;      // socket to B
  base::UniqueFd signals;      // signalfd of SIGCHLD and SIGTERM, which are blocked
  std::vector<uid_t> allowed;  // who may connect
};

class Shepherd {
 public:
  // The loop must outlive it.
  Shepherd(EventLoop& loop, OutputPump output, ShepherdOptions options);
  base::Status start();  // errors: errno codes; then the loop runs until nothing is left to do

 private:
  enum class Phase {
    Preparing,  // no plan yet
    Prepared,   // checked; waits for Start
    Starting,   // the spawner forks
    Running,    // every task has a process, or never will
    Draining,   // every task ended; leftovers die, output comes
    Done,       // all told; waits for End
  };

  void on_frame(const proto::InFrame& frame, std::vector<base::UniqueFd> descriptors);
  void on_prepare(const std::string& payload);
  void on_start();
  void on_signal(int signal);
  void on_resume();
  void on_input(const wire::TaskInput& input);
  void on_fence_done(const wire::FenceDone& done);
  void on_lost();
  void on_signal_descriptor();

  void refuse(int exit_code, const std::string& reason);
  std::string prepare_bytes() const;  // ShepherdPrepare as the plan has become
  void start_pmix();
  void on_relay(const std::string& payload);
  void on_pmix_failed(const std::string& why);
  void finish_prepare();
  void abort_job(std::uint32_t rank, std::int32_t code, const std::string& message,
                 bool left = false);
  void send_ready();
  void make_parts();
  void make_pmi();
  void make_network();
  void look_at_mpi(std::uint32_t task);
  void say_if_pm_was_not_used();
  void on_network(const proto::InFrame& frame, std::vector<base::UniqueFd> descriptors);
  base::Result<std::vector<base::UniqueFd>> open_task(std::uint32_t task);
  void on_forked(std::uint32_t task, pid_t pid);
  void on_all_forked();
  void on_spawn_failed(const base::Error& why);
  void on_task_ended(std::uint32_t task, const wire::TaskExit& exit);

  void pump_output();
  void send_output(const OutputChunk& chunk);
  void note(std::uint32_t task, const std::string& text);
  void update_output_watch();
  void send_fence(const PmiActions::Fence& fence);
  void send_input_taken();

  void drain();
  void kill_leftovers();
  void remove_leftovers();
  void finish_if_drained();
  void send_done();
  void quit();  // kills what is left and ends the loop
  void check_reachable();

  EventLoop& loop_;
  DaemonLink link_;
  SpawnClient spawner_;
  base::UniqueFd signals_;
  Phase phase_ = Phase::Preparing;
  pid_t group_ = 0;  // the spawner's pid: process group of the tasks; 0: not known yet
  bool ready_owed_ = false;

  std::optional<Plan> plan_;
  std::optional<TaskTable> tasks_;
  std::optional<PmiHub> pmi_;
  std::optional<PmixProcess> pmix_;
  std::optional<NetworkHub> network_;
  std::optional<wire::ShepherdAbort> abort_;  // the first one
  bool has_looked_at_mpi_ = false;
  bool has_objected_ = false;  // to an MPI library that cannot use PM
  OutputPump output_;
  OutputWindow window_;
  InputFeeder input_;
  std::uint64_t input_taken_ = 0;  // not told yet
  std::optional<TaskStdio> stdio_;

  std::set<int> early_signals_;  // for tasks that the spawner has not forked yet
  bool is_killed_ = false;       // before all tasks were forked
  bool leftovers_are_dead_ = false;
  base::WallTime began_{};  // as file systems tell it; of the tasks
  base::TimePoint drain_start_{};
  EventLoop::TimerId leftover_timer_ = 0;
  base::TimePoint lost_since_{};  // no connection since
  int unreachable_checks_ = 0;
  EventLoop::TimerId reachable_timer_ = 0;
};

}  // namespace score::shepherd
