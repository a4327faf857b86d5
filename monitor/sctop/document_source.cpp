// This file is tested by test_sctop.py.
#include "monitor/sctop/document_source.hpp"

#include "base/errc.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace score::sctop {

namespace {

constexpr std::size_t kReadBytes = 64UL * 1024;
constexpr std::size_t kMaxPending = 64UL << 20U;

}  // namespace

Result<std::string> find_command(const std::string& name) {
  auto beside = find_beside(name, {"."});
  if (!beside.empty()) return beside;
  return find_in_path(name);
}

Result<DocumentSource> DocumentSource::from_command(const std::vector<std::string>& words,
                                                    bool keeps_messages) {
  auto path = find_command(words.front());
  if (!path) return path.error();
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  auto messages = make_pipe();
  if (!messages) return messages.error();
  if (auto set = set_nonblocking(messages->read.get(), true); !set) return set.error();
  SpawnSpec spec;
  spec.path = *path;
  spec.argv = words;
  spec.environment = own_environment();
  spec.fds = {{pipe->write.get(), STDOUT_FILENO},
              {keeps_messages ? messages->write.get() : STDERR_FILENO, STDERR_FILENO}};
  spec.die_with_parent = true;
  auto spawned = spawn(spec);
  if (!spawned) return spawned.error();
  DocumentSource source(std::move(pipe->read));
  source.child_ = std::move(*spawned);
  if (keeps_messages) source.messages_ = std::move(messages->read);
  return source;
}

Result<DocumentSource> DocumentSource::from_file(const std::string& path) {
  auto file = path == "-" ? duplicate(STDIN_FILENO) : open_file(path, O_RDONLY | O_CLOEXEC);
  if (!file) return file.error();
  return DocumentSource(std::move(*file));
}

DocumentSource::~DocumentSource() {
  if (!child_ || !child_->pidfd) return;
  std::ignore = send_signal(child_->pidfd.get(), SIGTERM);
  std::ignore = reap(child_->pidfd.get(), true);
}

bool DocumentSource::read() {
  std::array<char, kReadBytes> buffer;
  const ssize_t got = ::read(input_.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) return false;
  pending_.append(buffer.data(), static_cast<std::size_t>(got));
  const auto end = pending_.rfind('\n');
  if (end == std::string::npos) return pending_.size() < kMaxPending;
  const auto begin = end == 0 ? std::string::npos : pending_.rfind('\n', end - 1);
  const auto first = begin == std::string::npos ? 0 : begin + 1;
  line_ = pending_.substr(first, end - first);
  pending_.erase(0, end + 1);
  return true;
}

void DocumentSource::read_messages() {
  std::array<char, kReadBytes> buffer;
  for (;;) {
    const ssize_t got = ::read(messages_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      messages_.reset();
      break;
    }
    pending_message_.append(buffer.data(), static_cast<std::size_t>(got));
    if (pending_message_.size() > kMaxPending) pending_message_.clear();
  }
  for (auto end = pending_message_.find('\n'); end != std::string::npos;
       end = pending_message_.find('\n')) {
    message_ = pending_message_.substr(0, end);
    pending_message_.erase(0, end + 1);
    const auto name = message_.find(": ");
    if (name != std::string::npos) message_.erase(0, name + 2);
  }
}

std::optional<std::string> DocumentSource::newest() {
  return std::exchange(line_, std::nullopt);
}

}  // namespace score::sctop
