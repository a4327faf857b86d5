// Applies signals that this process receives to the job. All are blocked and read from a
// descriptor, so that the loop handles them in turn.
#include "base/os/signals.hpp"
#include "base/text/plain.hpp"
#include "scout/run/front_end.hpp"
#include "scout/session/words.hpp"

#include <cerrno>
#include <csignal>
#include <iterator>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr int kHandled[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGTSTP,  SIGWINCH,
                            SIGUSR1, SIGUSR2, SIGALRM, SIGURG,  SIGVTALRM};
constexpr Duration kDoublePress = std::chrono::seconds{1};
constexpr int kMostCancels = 2;  // the first sends TERM, the second KILL

}  // namespace

void FrontEnd::catch_signals() {
  const sigset_t set = base::signals_to_handle(kHandled);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

void FrontEnd::on_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    on_signal(static_cast<int>(info.ssi_signo));
  }
}

void FrontEnd::on_signal(int signal) {
  switch (signal) {
    case SIGINT:
      if (options_.forward_interrupt && is_owner() && is_running_) return forward(SIGINT);
      return interrupt();
    case SIGTERM:
    case SIGHUP:
      if (!is_owner())
        return give_up(128 + signal, fmt::format("detached; job {} continues", job_));
      return cancel(Duration(-1), 128 + signal);
    case SIGTSTP:
      return suspend();
    case SIGQUIT:
      return print_status("");
    case SIGWINCH:
      return resize_terminal();
    default:
      return forward(signal);
  }
}

// Handles ^C. At a terminal the first ^C prints the status, and a second one within a second ends
// the job. Without a terminal the first one ends it.
void FrontEnd::interrupt() {
  if (!is_owner())
    return give_up(kExitInterrupted, fmt::format("detached; job {} continues", job_));
  const auto now = monotonic_now();
  const bool again = last_interrupt_ != TimePoint{} && now - last_interrupt_ <= kDoublePress;
  last_interrupt_ = now;
  if (cancels_ > 0) return cancel(Duration(0), kExitInterrupted);
  if (isatty(STDERR_FILENO) == 1 && !again && state_ != State::Lost) {
    return print_status("; press ^C again within 1 s to end it");
  }
  cancel(Duration(-1), kExitInterrupted);
}

void FrontEnd::cancel(Duration grace, int exit_code) {
  if (!is_owner()) return give_up(exit_code, fmt::format("detached; job {} continues", job_));
  ++cancels_;
  forced_code_ = exit_code;
  if (state_ == State::Lost) {
    return give_up(exit_code, job_ == 0 ? "exiting without the head"
                                        : fmt::format("exiting; job {} continues", job_));
  }
  // The front end still runs because the reader takes no more output, or the head does not answer.
  if (state_ == State::Ended) return give_up(exit_code, "exiting; the rest of the output is lost");
  if (cancels_ > kMostCancels)
    return give_up(exit_code, fmt::format("exiting; job {} may still be ending", job_));
  wire::CancelJob message;
  message.set_grace_ns(grace.count());
  message.set_tag(link_ ? link_->next_tag() : 0);
  request(message);
}

// Handles ^Z: suspends the whole job, then stops this process as a shell expects; `fg` resumes
// both.
void FrontEnd::suspend() {
  terminal_.leave();
  wire::ControlJob control;
  if (is_owner() && state_ == State::Attached) {
    control.set_what(wire::ControlJob::SUSPEND);
    control.set_tag(link_->next_tag());
    request(control);
    if (const auto sent = link_->flush(); !sent) lose_link(sent.error());
  }
  raise(SIGSTOP);
  if (is_owner() && state_ == State::Attached) {
    control.set_what(wire::ControlJob::RESUME);
    control.set_tag(link_->next_tag());
    request(control);
  }
  if (options_.pty && is_running_ && isatty(STDIN_FILENO) == 1) {
    if (const auto raw = terminal_.enter(STDIN_FILENO); !raw) say(raw.error().message());
    resize_terminal();
  }
}

void FrontEnd::forward(int signal) {
  if (!is_owner()) return;
  wire::SignalJob message;
  message.set_signal(signal);
  message.set_tag(link_ ? link_->next_tag() : 0);
  request(message);
}

void FrontEnd::print_status(std::string_view hint) {
  if (state_ == State::Lost)
    return say(fmt::format("job {}: no connection to the head{}", job_, hint));
  if (job_ == 0) return say(fmt::format("the head has not accepted the job yet{}", hint));
  const auto nodes = static_cast<std::uint64_t>(status_.nodes_size());
  say(fmt::format("job {} is {}, {} on {}, scheduled {}{}", job_, state_word(status_.state()),
                  counted(status_.tasks(), "task"), counted(nodes, "node"),
                  short_time(status_.scheduled_ns()), hint));
}

void FrontEnd::resize_terminal() {
  winsize size{};
  if (!options_.pty || ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0) return;
  wire::Resize message;
  message.set_rows(size.ws_row);
  message.set_columns(size.ws_col);
  request(message);
}

}  // namespace score::scout
