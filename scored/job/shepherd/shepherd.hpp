#pragma once
// A shepherd (process A) runs one attempt of a job on one node, as the user. It checks the plan,
// has the tasks started, owns their pidfds, streams and PMI, and reports; it outlives the node
// daemon. ShepherdAgent decides; this class owns the connections, reports events to the agent and
// carries out its actions; JobParts has what serves the job.
//
// Signals from the node daemon go to the tasks (the ranks' first processes), not to the processes
// that they started. When every task has ended, all processes that they left behind are killed, and
// the rest of the pipes' contents is sent. Done then reports all exits when the front end has taken
// the output, or after a second. A node daemon that resumes receives Done again, until End, but not
// before all output is taken.

#include "scored/job/shepherd/job_parts.hpp"
#include "scored/job/shepherd/shepherd_agent.hpp"

#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace score::shepherd {

struct ShepherdOptions {
  base::UniqueFd listener;     // for connections of the node daemon
  base::UniqueFd spawner;      // socket to the spawner (process B)
  base::UniqueFd helpers;      // socket to the process that starts helpers (C); empty: none
  base::UniqueFd signals;      // signalfd of SIGCHLD and SIGTERM, which are blocked
  std::vector<uid_t> allowed;  // users that may connect
  // In a job that may be saved, this process has namespaces of its own, and `helpers` leads to
  // scored-checkpoint. This is the process that waits outside; 0: an ordinary job.
  pid_t outside = 0;
  bool restores = false;  // `spawner` leads to scored-checkpoint too
};

class Shepherd {
 public:
  // The loop must outlive the shepherd.
  Shepherd(EventLoop& loop, OutputPump output, ShepherdOptions options);
  base::Status start();  // errors: errno codes; the loop then runs until all is done

 private:
  using Event = ShepherdAgent::Event;

  void handle(const ShepherdAgent::Input& event);
  void carry_out(const ShepherdAgent::Action& action);

  SpawnClient::Handlers spawner_handlers();
  void on_frame(const proto::InFrame& frame, std::vector<base::UniqueFd> descriptors);
  void on_prepare(const std::string& payload);
  void on_sweep(const wire::ShepherdSweep& order);
  void on_refused(const wire::TaskOutputRefused& message);
  void on_input(const wire::TaskInput& input);
  void on_signal_descriptor();

  void on_task_ended(const SpawnReply& report);
  void prepare_tasks();
  void begin_tasks();
  void abort_job(const MpiServers::Abort& abort);
  void kill_leftovers();
  void remove_leftovers();
  void start_timer(Event event);
  void quit();  // kills remaining processes and ends the loop

  void send_ready();
  void send_refused(const Refusal& why);
  void send_report(int phase);
  void send_input_taken();
  void send_done();

  EventLoop& loop_;
  DaemonLink link_;
  SpawnClient spawner_;
  const bool has_helpers_;
  HelperClient helpers_;
  pid_t helper_spawner_ = 0;  // C; 0: none, or not known
  base::UniqueFd signals_;
  const pid_t outside_;
  CheckpointPart checkpoint_;
  OutputSender output_;
  InputFeeder input_;
  std::uint64_t input_taken_ = 0;  // not reported yet
  ShepherdAgent agent_;
  JobParts job_;
  std::optional<wire::ShepherdAbort> abort_;  // the first one
  base::WallTime began_{};                    // start of the tasks, in file system time
  std::map<Event, EventLoop::TimerId> timers_;
};

}  // namespace score::shepherd
