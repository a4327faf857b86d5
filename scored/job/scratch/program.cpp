#include "scored/job/scratch/program.hpp"

#include "base/os/log.hpp"
#include "base/text.hpp"

#include <array>
#include <csignal>
#include <poll.h>
#include <unistd.h>

namespace score::shepherd {

namespace {

constexpr std::size_t kMostText = 4'096;  // per line
constexpr int kMostWaitMs = 2'000;        // for the end of a killed program

}  // namespace

std::string Program::find(const std::string& name) {
  return base::find_beside(name, {".", "../../sbin", "../../bin"});
}

base::Status Program::start(std::vector<std::string> arguments, int extra) {
  stop();
  auto messages = base::make_pipe();
  if (!messages) return messages.error();
  auto ready = base::make_pipe();
  if (!ready) return ready.error();
  arguments.insert(arguments.begin(), name_);
  auto awaited = std::make_shared<bool>(true);
  const auto started = [this, awaited](base::Result<base::SpawnedProcess> process) {
    if (*awaited) return on_started(std::move(process));
    if (process) std::ignore = base::send_signal(process->pidfd.get(), SIGKILL);
  };
  auto asked = helpers_.start({.arguments = std::move(arguments),
                               .errors = messages->write.get(),
                               .extra = extra,
                               .ready = ready->write.get()},
                              started);
  if (!asked) return asked;
  awaited_ = std::move(awaited);
  messages_ = std::move(messages->read);
  ready_ = std::move(ready->read);
  last_line_.clear();
  if (auto set = base::set_nonblocking(messages_.get(), true); !set) return set;
  auto added = loop_.add(messages_.get(), EPOLLIN, [this](std::uint32_t) { on_messages(); });
  if (added) added = loop_.add(ready_.get(), EPOLLIN, [this](std::uint32_t) { on_ready(); });
  return added;
}

void Program::on_started(base::Result<base::SpawnedProcess> started) {
  base::Status watched;
  if (started) {
    pid_ = started->pid;
    pidfd_ = std::move(started->pidfd);
    watched = loop_.add(pidfd_.get(), EPOLLIN, [this](std::uint32_t) { on_end(); });
  } else {
    watched = started.error();
  }
  if (watched) return;
  stop();
  last_line_ = watched.error().message();
  base::log_error("Cannot start a helper", base::kv("program", name_), base::kv("err", last_line_));
  handlers_.ended();
}

void Program::on_ready() {
  char byte = 0;
  const bool is_ready = read(ready_.get(), &byte, 1) == 1;
  loop_.remove(ready_.get());
  ready_.reset();
  if (is_ready && handlers_.ready) handlers_.ready();
}

void Program::on_messages() {
  std::array<char, 1'024> buffer;
  const ssize_t got = read(messages_.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    loop_.remove(messages_.get());
    return messages_.reset();
  }
  text_.append(buffer.data(), static_cast<std::size_t>(got));
  for (std::size_t end = 0; (end = text_.find('\n')) != text_.npos; text_.erase(0, end + 1)) {
    std::string_view line(text_.data(), end);
    // The prefix is the priority that systemd's journal reads.
    if (line.size() > 3 && line[0] == '<' && line[2] == '>') line.remove_prefix(3);
    last_line_ = base::escape_terminal(line, kMostText);
    base::log_info(name_, base::kv("stderr", last_line_));
  }
  if (text_.size() > kMostText) text_.clear();
}

void Program::forget() {
  for (base::UniqueFd* fd : {&pidfd_, &messages_, &ready_}) {
    if (*fd) loop_.remove(fd->get());
    fd->reset();
  }
  if (awaited_) *awaited_ = false;
  pid_ = 0;
  text_.clear();
}

void Program::on_end() {
  while (messages_) {  // read the last messages
    const std::size_t before = text_.size() + last_line_.size();
    on_messages();
    if (text_.size() + last_line_.size() == before) break;
  }
  forget();
  handlers_.ended();
}

void Program::stop() {
  if (pidfd_) {
    std::ignore = base::send_signal(pidfd_.get(), SIGKILL);
    pollfd end{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
    poll(&end, 1, kMostWaitMs);
  }
  forget();
}

}  // namespace score::shepherd
