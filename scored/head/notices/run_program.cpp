#include "scored/head/notices/run_program.hpp"

#include "base/os/fd.hpp"
#include "base/os/spawn.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <sysexits.h>
#include <unistd.h>

namespace score::head {
namespace {

constexpr std::size_t kMaxKept = 2'048;  // bytes of standard error
constexpr Duration kLastWords = 100ms;   // to read standard error after the end

std::vector<std::string> environment() {
  return {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"};
}

// Talk moves bytes between the program and us until it ends or the time is over.
class Talk {
 public:
  Talk(SpawnedProcess& child, UniqueFd input, UniqueFd errors, std::string_view text)
      : child_(child), input_(std::move(input)), errors_(std::move(errors)), text_(text) {
    if (text_.empty()) input_.reset();
  }

  // Returns false if the time is over.
  bool run_until(TimePoint deadline) {
    for (;;) {
      const Duration left = deadline - monotonic_now();
      if (left <= Duration(0)) return false;
      std::array<pollfd, 3> fds = {pollfd{child_.pidfd.get(), POLLIN, 0},
                                   pollfd{input_ ? input_.get() : -1, POLLOUT, 0},
                                   pollfd{errors_ ? errors_.get() : -1, POLLIN, 0}};
      const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count() + 1;
      if (::poll(fds.data(), fds.size(), static_cast<int>(ms)) < 0 && errno != EINTR) return false;
      if (fds[1].revents != 0) write_some();
      if (fds[2].revents != 0) read_some();
      if (fds[0].revents != 0) break;
    }
    read_rest();
    return true;
  }

  [[nodiscard]] const std::string& kept() const { return kept_; }

 private:
  void write_some() {
    const ssize_t put = ::write(input_.get(), text_.data(), text_.size());
    if (put < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (put > 0) text_.remove_prefix(static_cast<std::size_t>(put));
    if (put <= 0 || text_.empty()) input_.reset();  // it may end without reading all
  }

  // Keeps the newest bytes, because the last line says why a program failed.
  void read_some() {
    std::array<char, 4'096> part{};
    const ssize_t got = ::read(errors_.get(), part.data(), part.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return errors_.reset();
    kept_.append(part.data(), static_cast<std::size_t>(got));
    if (kept_.size() > kMaxKept) kept_.erase(0, kept_.size() - kMaxKept);
  }

  // A process that the program left behind may hold its standard error open.
  void read_rest() {
    const TimePoint until = monotonic_now() + kLastWords;
    while (errors_ && monotonic_now() < until) {
      pollfd fd{errors_.get(), POLLIN, 0};
      if (::poll(&fd, 1, 10) > 0) read_some();
    }
  }

  SpawnedProcess& child_;
  UniqueFd input_, errors_;
  std::string_view text_;
  std::string kept_;
};

void set_nonblocking(const UniqueFd& fd) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

}  // namespace

Status run_program(const ProgramRun& run, int& exit_code) {
  auto input = make_pipe();
  if (!input) return input.error();
  auto errors = make_pipe();
  if (!errors) return errors.error();
  SpawnSpec spec;
  spec.path = run.path;
  spec.argv = {run.path};
  spec.argv.insert(spec.argv.end(), run.arguments.begin(), run.arguments.end());
  spec.environment = environment();
  spec.fds = {{input->read.get(), 0}, {errors->write.get(), 2}};
  spec.directory = "/";
  spec.new_session = true;
  spec.die_with_parent = true;
  auto child = spawn(spec);
  if (!child) return child.error();
  input->read.reset();
  errors->write.reset();
  set_nonblocking(input->write);
  set_nonblocking(errors->read);
  Talk talk(*child, std::move(input->write), std::move(errors->read), run.input);
  const bool is_in_time = talk.run_until(monotonic_now() + run.timeout);
  if (!is_in_time) ::kill(-child->pid, SIGKILL);  // not reaped yet, so the number is still its own
  const auto ended = reap(child->pidfd.get(), true);
  if (!is_in_time) {
    return fail(Errc::Timeout, "{} did not end within {}", run.path, format_duration(run.timeout));
  }
  if (!ended) return ended.error();
  const ExitStatus status = ended->value_or(ExitStatus());
  if (status.signal == 0) exit_code = status.code;
  if (status.shell_code() == 0) return {};
  std::string why = last_line(talk.kept());
  if (!why.empty()) why.insert(0, ": ");
  return status.signal != 0
             ? fail(Errc::WrongState, "{} was killed by signal {}{}", run.path, status.signal, why)
             : fail(Errc::WrongState, "{} exited with code {}{}", run.path, status.code, why);
}

bool is_worth_a_retry(int exit_code) {
  constexpr std::array kPermanent = {EX_USAGE,  EX_DATAERR, EX_NOUSER,
                                     EX_NOHOST, EX_NOPERM,  EX_CONFIG};
  return std::ranges::find(kPermanent, exit_code) == kPermanent.end();
}

}  // namespace score::head
