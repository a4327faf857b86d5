// Declares scrun's options and the submission that they make.
#pragma once

#include "base/result.hpp"
#include "base/time.hpp"
#include "proto/client.pb.h"
#include "scout/run/demands.hpp"
#include "scout/run/environment.hpp"
#include "scout/run/programs.hpp"
#include "scout/session/command.hpp"
#include "scout/waits/checkpoint_options.hpp"
#include "scout/waits/notice_options.hpp"
#include "scout/waits/wait_options.hpp"

#include <optional>
#include <string>
#include <vector>

namespace score::scout {

struct RunOptions : PlaceOptions {
  CommonOptions common;
  std::string nodes;  // "4" or "2-4"; empty: as the tasks need
  std::uint32_t tasks = 0;
  std::uint32_t tasks_per_node = 0;
  std::uint32_t spawn = 0;  // additional tasks that programs may start
  std::uint32_t cpus_per_task = 1;
  bool overcommit = false;  // no warning when tasks share cores
  bool no_overcommit = false;
  std::string memory;
  std::string memory_per_cpu;
  std::string only_nodes;
  std::string except_nodes;
  DemandOptions demands;
  std::string time;
  std::string wall_time;
  std::string queue = "normal";
  std::string account;       // empty: the user's default
  std::string reservation;   // empty: none
  std::string partition;     // empty: the default
  std::uint32_t weight = 0;  // 0: the default
  std::string share = "weight";
  std::int32_t priority = 0;
  std::int32_t nice = 0;
  bool hold = false;
  std::string immediate;
  WaitOptions waits;
  NoticeOptions notices;
  std::string job_name;
  std::vector<std::string> variables;  // NAME=value, in addition to those of the rule
  std::string signal;
  std::string cpu_bind = "none";
  std::string distribution = "block";
  std::string mpi = "auto";
  std::string net = "native";
  bool label = false;
  bool unbuffered = false;
  bool pty = false;
  bool forward_interrupt = false;
  bool detach = false;
  bool dry_run = false;
  bool keep_going = false;
  bool kill_deadlock = false;
  bool no_fill = false;
  bool no_park = false;
  CheckpointOptions checkpoint;
  bool requeue = false;
  bool no_requeue = false;
  bool allow_root = false;
  bool quiet = false;
  bool verbose = false;
  std::string inside;  // --job
  bool overlap = false;
  std::uint64_t job_around = 0;  // the job that contains this step; 0: none
  bool has_cpus_per_task = false;
  std::string script;                    // text of a batch script; empty: a program runs
  std::string multi_prog;                // file; empty: the programs are on the command line
  std::vector<ProgramOptions> programs;  // not empty
};

// Parses the options and the words after them. A returned value is the exit code to end with now;
// everything has been printed.
std::optional<int> parse_run_options(const Invocation& invocation, RunOptions& options);

// Adds the options of every command that holds cores, including scbatch and scalloc: sizes, limits,
// dependencies, and the name.
void add_job_options(CLI::App& app, RunOptions& options);

// Returns 16 random bytes for Submit.request_id.
std::string new_request_id();

// Returns the submission with a new request id; environment, directory, umask and limits are this
// process's. Errors: Malformed and TooLarge, which name the option.
Result<wire::Submit> make_submission(const RunOptions& options);

// Fills in what the options request. Errors: Malformed and TooLarge, which name the option.
Status fill_resources(const RunOptions& options, wire::ResourceRequest& resources);

}  // namespace score::scout
