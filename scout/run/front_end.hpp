// The front end (SCore's FEP) represents a job to the user. It is one poll loop over the connection
// to the head, the signals, standard input and the two outputs.
//
//   Submitting --Submitted--> Attached --JobEnded--> Ended
//        \__ connection lost: repeated with the same request id __/
//   Attached --connection lost--> Lost --connected--> Attached (received output is not sent again)
#pragma once

#include "base/os/fd.hpp"
#include "base/time.hpp"
#include "scout/run/output_writer.hpp"
#include "scout/run/run_options.hpp"
#include "scout/run/seen_output.hpp"
#include "scout/run/terminal.hpp"
#include "scout/session/command.hpp"
#include "scout/session/head_link.hpp"

#include <optional>
#include <set>
#include <string>
#include <sys/types.h>

namespace score::scout {

struct FrontEndOptions {
  Invocation invocation;
  std::string socket;
  std::optional<wire::Submit> submission;  // none: `job` is watched
  std::uint64_t job = 0;
  bool reads_input = true;
  bool pty = false;
  bool forward_interrupt = false;  // SIGINT goes to the tasks while they run
  OutputStyle style = OutputStyle::Plain;
  bool bold = false;           // headings of gathered output
  bool quiet = false;          // no start lines, no reasons for waiting; errors are always printed
  bool start_lines = false;    // SCORE: connected ...
  bool warns_sharing = false;  // warns that tasks share cores
  int ready =
      -1;  // descriptor that gets the serialised status when the job runs, and is then closed
  bool json = false;  // prints the job as JSON on standard error at the end
};

class FrontEnd {
 public:
  FrontEnd(FrontEndOptions options, HeadLink link);
  ~FrontEnd();
  FrontEnd(const FrontEnd&) = delete;
  FrontEnd& operator=(const FrontEnd&) = delete;

  // Runs until the job has ended and its output is written, or the user detaches. Returns the exit
  // code.
  int run();

 private:
  enum class State {
    Submitting,  // Submit is sent, there is no job id yet
    Attached,    // the job is known and watched
    Lost,        // the connection broke; the front end reconnects
    Ended,       // the job has ended; output may still be unwritten
  };

  // These are in front_end.cpp: the loop and the head's frames.
  void submit();
  void attach();
  void turn();
  int poll_timeout() const;
  void on_link_ready();
  void on_frame(const proto::InFrame& frame);
  void on_submitted(const wire::Submitted& submitted);
  void on_news(const wire::JobStatus& status);
  void on_output(const wire::Output& output);
  void on_end(const wire::JobStatus& status);
  void on_failed(const wire::Failed& failed);
  void lose_link(const Error& error);
  void try_again();
  void give_up(int code, std::string_view text);
  void print_end();
  void show_reasons(const wire::JobStatus& status);
  void write_output(bool is_error);
  void read_input();
  [[nodiscard]] bool wants_input() const;

  [[nodiscard]] bool is_owner() const { return options_.submission.has_value(); }

  [[nodiscard]] bool is_done() const;
  [[nodiscard]] std::string name() const;  // "job 7", "step 7.0"

  // These are in front_end_signals.cpp: they apply a signal of this process to the job.
  void catch_signals();
  void on_signals();
  void on_signal(int signal);
  void interrupt();
  void suspend();
  void cancel(Duration grace, int exit_code);
  void forward(int signal);
  void print_status(std::string_view hint);
  void resize_terminal();

  template <class Request>
  void request(Request message) {
    if (job_ == 0 || state_ != State::Attached) return;
    message.set_job(job_);
    link_->queue(message);
  }

  void say(std::string_view text) { print_error(options_.invocation, text); }

  FrontEndOptions options_;
  std::optional<HeadLink> link_;
  State state_ = State::Submitting;
  std::uint64_t job_ = 0;
  std::uint64_t attach_tag_ = 0;
  std::uint64_t submit_tag_ = 0;
  wire::JobStatus status_;
  bool is_running_ = false;
  std::uint32_t restarts_ = 0;
  bool is_deadlocked_ = false;
  std::set<std::string> reasons_shown_;

  OutputWriter output_;
  SeenOutput seen_;
  RawTerminal terminal_;
  bool input_open_;
  std::uint64_t input_window_ = 0;
  std::uint64_t input_waiting_ = 0;  // bytes sent, not yet confirmed

  UniqueFd signals_;
  TimePoint last_interrupt_{};
  int cancels_ = 0;
  std::optional<int> forced_code_;  // replaces the job's exit code

  TimePoint lost_at_{};
  TimePoint next_try_{};
  std::optional<TimePoint> prompts_due_;
  int exit_code_ = kExitError;
  bool gone_ = false;
};

}  // namespace score::scout
