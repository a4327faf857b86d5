#include "scout/run/front_end.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "scout/session/job_views.hpp"
#include "scout/session/session.hpp"
#include "scout/session/words.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace score::scout {

namespace {

constexpr std::uint64_t kWindow = 4 * limits::kIoWindowBytes;
constexpr Duration kRetryPause = std::chrono::milliseconds{200};
constexpr Duration kPromptPause = std::chrono::milliseconds{200};  // without new output

}  // namespace

FrontEnd::FrontEnd(FrontEndOptions options, HeadLink link)
    : options_(std::move(options)),
      link_(std::move(link)),
      job_(options_.job),
      output_(options_.style),
      input_open_(options_.reads_input) {}

FrontEnd::~FrontEnd() = default;

int FrontEnd::run() {
  catch_signals();
  if (is_owner()) {
    submit();
  } else {
    attach();
  }
  while (!is_done()) turn();
  terminal_.leave();
  print_end();
  return forced_code_.value_or(exit_code_);
}

// Prints how the job ended, after its last output.
void FrontEnd::print_end() {
  if (state_ != State::Ended) return;
  const auto state = static_cast<base::JobState>(status_.state());
  if (!forced_code_) {
    for (const auto& reason : status_.reasons()) {
      say(fmt::format("{} {}: {}", name(), state_word(status_.state()), escape_terminal(reason)));
    }
    // An attached command may have missed all output, so it reports a success too.
    const bool is_news = state == base::JobState::Completed && !is_owner() && !options_.quiet;
    if (is_news && status_.reasons().empty()) say(fmt::format("{} completed", name()));
  }
  if (options_.json) tell(job_document(status_));
}

std::string FrontEnd::name() const {
  return fmt::format("{} {}", status_.step_of() == 0 ? "job" : "step",
                     status_.job() == 0 ? std::to_string(job_) : job_id(status_));
}

bool FrontEnd::is_done() const {
  if (gone_) return true;
  return state_ == State::Ended && !output_.has_output(false) && !output_.has_output(true);
}

void FrontEnd::submit() {
  state_ = State::Submitting;
  submit_tag_ = link_->next_tag();
  options_.submission->set_tag(submit_tag_);
  link_->queue(*options_.submission);
}

void FrontEnd::attach() {
  state_ = State::Attached;
  attach_tag_ = link_->next_tag();
  wire::Attach attach;
  attach.set_tag(attach_tag_);
  attach.set_job(job_);
  attach.set_front_end(is_owner());
  attach.set_input(options_.reads_input);
  attach.set_window_bytes(kWindow - std::min(kWindow, output_.waiting()));
  // An attached command does not know its position in the log.
  attach.set_have_bytes(is_owner() ? output_.received() : 0);
  link_->queue(attach);
  input_window_ = limits::kIoWindowBytes;
  input_waiting_ = 0;
}

// ---- the loop

void FrontEnd::turn() {
  enum { kSignals, kLink, kInput, kOutput, kError };

  std::array<pollfd, 5> fds{};
  fds[kSignals] = {.fd = signals_.get(), .events = POLLIN, .revents = 0};
  fds[kLink] = {.fd = link_ ? link_->fd() : -1, .events = POLLIN, .revents = 0};
  if (link_ && link_->wants_write()) fds[kLink].events |= POLLOUT;
  fds[kInput] = {.fd = wants_input() ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
  fds[kOutput] = {
      .fd = output_.has_output(false) ? STDOUT_FILENO : -1, .events = POLLOUT, .revents = 0};
  fds[kError] = {
      .fd = output_.has_output(true) ? STDERR_FILENO : -1, .events = POLLOUT, .revents = 0};
  if (::poll(fds.data(), fds.size(), poll_timeout()) < 0 && errno != EINTR) {
    return give_up(kExitError, "cannot wait for events: poll failed");
  }
  if (fds[kSignals].revents != 0) on_signals();
  if (fds[kLink].revents != 0) on_link_ready();
  if (fds[kOutput].revents != 0) write_output(false);
  if (fds[kError].revents != 0) write_output(true);
  if (fds[kInput].revents != 0) read_input();
  if (state_ == State::Lost && monotonic_now() >= next_try_) try_again();
  if (prompts_due_ && monotonic_now() >= *prompts_due_) {
    prompts_due_.reset();
    output_.show_prompts();
  }
}

int FrontEnd::poll_timeout() const {
  std::optional<TimePoint> next = prompts_due_;
  if (state_ == State::Lost) next = next_try_;
  if (!next) return input_open_ && is_running_ && !may_read(STDIN_FILENO) ? 500 : -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - monotonic_now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void FrontEnd::on_link_ready() {
  auto status = link_->flush();
  const auto filled = status ? link_->fill() : status;
  while (link_) {
    const auto frame = link_->next_frame();
    if (!frame) break;
    on_frame(*frame);
  }
  if (!filled && link_) lose_link(filled.error());
}

// ---- frames from the head

void FrontEnd::on_frame(const proto::InFrame& frame) {
  using proto::FrameType;
  const auto take = [&]<class Message>(void (FrontEnd::*handle)(const Message&)) {
    if (const auto message = decode<Message>(frame)) (this->*handle)(*message);
  };
  switch (frame.type) {
    case FrameType::Submitted:
      return take(&FrontEnd::on_submitted);
    case FrameType::Failed:
      return take(&FrontEnd::on_failed);
    case FrameType::JobNews:
      if (const auto news = decode<wire::JobNews>(frame)) on_news(news->status());
      return;
    case FrameType::JobEnded:
      if (const auto end = decode<wire::JobEnded>(frame)) on_end(end->status());
      return;
    case FrameType::Output:
      return take(&FrontEnd::on_output);
    case FrameType::InputTaken:
      if (const auto taken = decode<wire::InputTaken>(frame)) {
        input_window_ += taken->bytes();
        input_waiting_ -= std::min(input_waiting_, taken->bytes());
      }
      return;
    default:
      return;  // Done needs no action
  }
}

void FrontEnd::on_submitted(const wire::Submitted& submitted) {
  if (job_ == 0 && options_.start_lines)
    tell(fmt::format("SCORE: connected (jid={})", submitted.job()));
  if (job_ == 0 && submitted.no_mail() && !options_.quiet) say(kNoMail);
  job_ = submitted.job();
  if (options_.warns_sharing) {
    const auto cpus = options_.submission->resources().cpus_per_task();
    const auto sharing = sharing_text(submitted.tasks_per_core(), cpus);
    if (!sharing.empty()) say(sharing);
  }
  attach();
  if (cancels_ > 0) cancel(Duration(-1), forced_code_.value_or(kExitInterrupted));
}

void FrontEnd::on_news(const wire::JobStatus& status) {
  status_ = status;
  if (status.tasks() == 1 || options_.pty) output_.pass_rank_0();
  const auto state = static_cast<base::JobState>(status.state());
  if (status.restarts() > restarts_) {
    restarts_ = status.restarts();
    is_running_ = false;
    say(fmt::format("{} lost a node and is restarted (restart {})", name(), restarts_));
  }
  if (state == base::JobState::Pending) show_reasons(status);
  const bool was_deadlocked = std::exchange(is_deadlocked_, is_deadlocked(status));
  if (is_deadlocked_ && !was_deadlocked) {
    const std::string why =
        status.reasons_size() > 0 ? status.reasons(0) : "no task can send a message";
    say(fmt::format("{} is deadlocked: {}", name(), escape_terminal(why, 2'000)));
  }
  const bool runs = state == base::JobState::Running || state == base::JobState::Suspended;
  if (!runs || is_running_) return;
  is_running_ = true;
  if (const int ready = std::exchange(options_.ready, -1); ready >= 0) {
    if (const auto sent = write_all(ready, status.SerializeAsString()); !sent) {
      say(sent.error().message());
    }
    ::close(ready);
  }
  const auto nodes = static_cast<std::uint64_t>(status.nodes_size());
  if (options_.start_lines) tell(fmt::format("SCORE: {} ready.", counted(nodes, "host")));
  if (options_.pty && isatty(STDIN_FILENO) == 1) {
    if (const auto raw = terminal_.enter(STDIN_FILENO); !raw) say(raw.error().message());
    resize_terminal();
  }
}

void FrontEnd::show_reasons(const wire::JobStatus& status) {
  std::set<std::string> reasons(status.reasons().begin(), status.reasons().end());
  if (reasons == reasons_shown_) return;
  if (!options_.quiet) {
    for (const auto& reason : status.reasons()) {
      say(fmt::format("{} waits: {}", name(), escape_terminal(reason)));
    }
  }
  reasons_shown_ = std::move(reasons);
}

void FrontEnd::on_output(const wire::Output& output) {
  const std::size_t known =
      seen_.see({output.attempt(), output.node_index(), output.offset(), output.data().size()});
  output_.take(output.rank(), output.stream() == wire::STDERR, output.data(), known);
  prompts_due_.reset();
  if (output_.has_prompts()) prompts_due_ = monotonic_now() + kPromptPause;
}

void FrontEnd::on_end(const wire::JobStatus& status) {
  state_ = State::Ended;
  status_ = status;
  terminal_.leave();
  output_.finish({status.nodes().begin(), status.nodes().end()}, options_.bold);
  exit_code_ = status.exit_code();
}

void FrontEnd::on_failed(const wire::Failed& failed) {
  const auto error = refused(failed.error());
  const std::string text = escape_terminal(error.context());
  if (failed.tag() == submit_tag_ && state_ == State::Submitting) {
    return give_up(exit_code_of(error), text);
  }
  if (failed.tag() == attach_tag_) return give_up(exit_code_of(error), text);
  if (state_ == State::Attached) say(text);
}

// ---- a lost head

void FrontEnd::lose_link(const Error& error) {
  link_.reset();
  if (state_ == State::Ended || gone_) return;
  if (!error.is(Errc::Closed) && error.code().category() != std::generic_category()) {
    return give_up(kExitError, error.message());
  }
  if (state_ != State::Lost) {
    lost_at_ = monotonic_now();
    say(fmt::format("lost connection to the head{}; retrying for {}",
                    job_ == 0 ? "" : fmt::format(", job {} continues", job_),
                    format_duration(kReconnectFor)));
    if (input_waiting_ > 0)
      say(fmt::format("{} of input may be lost", counted(input_waiting_, "byte")));
  }
  state_ = State::Lost;
  next_try_ = monotonic_now() + kRetryPause;
}

void FrontEnd::try_again() {
  next_try_ = monotonic_now() + kRetryPause;
  auto link = HeadLink::connect(options_.socket);
  if (!link) {
    if (monotonic_now() - lost_at_ < kReconnectFor) return;
    const auto hint = job_ == 0 ? std::string("scq shows whether the job was accepted")
                                : fmt::format("`scattach {}` attaches to the job later", job_);
    return give_up(kExitError,
                   fmt::format("no connection to the head: {}; {}", link.error().message(), hint));
  }
  link_ = std::move(*link);
  say("reconnected to the head");
  if (job_ == 0) {
    submit();
  } else {
    attach();
  }
}

void FrontEnd::give_up(int code, std::string_view text) {
  terminal_.leave();
  say(text);
  exit_code_ = code;
  gone_ = true;
}

// ---- input and output

void FrontEnd::write_output(bool is_error) {
  const auto written = output_.write_some(is_error);
  wire::OutputTaken taken;
  taken.set_job(job_);
  // Dropped bytes are included, because the head reports the end of the job only when all output
  // has room.
  taken.set_bytes(written.value_or(0) + output_.take_dropped());
  if (taken.bytes() > 0 && link_ && state_ == State::Attached) link_->queue(taken);
  if (written) return;
  // The reader closed the pipe, as in `scrun yes | head -1`, or the disk is full. In both cases the
  // job ends too.
  const bool is_gone = written.error().is(std::errc::broken_pipe);
  if (!is_gone && !forced_code_) say(written.error().message());
  const int code = is_gone ? 128 + SIGPIPE : kExitError;
  if (is_owner() && state_ == State::Ended) {
    forced_code_ = code;
  } else if (cancels_ == 0) {
    cancel(Duration(-1), code);
  }
}

bool FrontEnd::wants_input() const {
  return input_open_ && is_running_ && state_ == State::Attached && input_window_ > 0 &&
         may_read(STDIN_FILENO);
}

void FrontEnd::read_input() {
  std::array<char, limits::kIoChunkBytes> buffer;
  const auto room = std::min<std::uint64_t>(buffer.size(), input_window_);
  const ssize_t got = ::read(STDIN_FILENO, buffer.data(), room);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  wire::Input input;
  if (got > 0) {
    const auto bytes = static_cast<std::uint64_t>(got);
    input.set_data(buffer.data(), bytes);
    input_window_ -= bytes;
    input_waiting_ += bytes;
  } else {
    input.set_eof(true);
    input_open_ = false;
  }
  request(input);
}

}  // namespace score::scout
