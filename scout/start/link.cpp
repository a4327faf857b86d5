#include "scout/start/link.hpp"

#include "base/text.hpp"
#include "scout/start/plan/messages.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace score::scout {

Result<Link> Link::start(const std::vector<std::string>& words, const std::string& log) {
  const auto program = find_in_path(words[0]);
  if (!program) return program.error();
  auto input = make_pipe();
  if (!input) return input.error();
  auto output = make_pipe();
  if (!output) return output.error();
  const auto errors = open_file(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (!errors) return errors.error();
  SpawnSpec spec;
  spec.path = *program;
  spec.argv = words;
  spec.environment = own_environment();
  spec.fds = {{input->read.get(), 0}, {output->write.get(), 1}, {errors->get(), 2}};
  spec.new_session = true;  // without a terminal it cannot prompt, and ^C does not reach it
  spec.die_with_parent = true;
  auto child = spawn(spec);
  if (!child) return child.error();
  Link link;
  link.process_ = std::move(*child);
  link.input_ = std::move(input->write);
  link.output_ = std::move(output->read);
  link.log_ = log;
  for (const int fd : {link.input_.get(), link.output_.get()}) {
    if (auto set = set_nonblocking(fd, true); !set) return set.error();
  }
  return link;
}

void Link::send(std::shared_ptr<const std::string> bytes) {
  if (!input_) return;
  queue_.push_back(std::move(bytes));
  flush();
}

void Link::flush() {
  while (input_ && !queue_.empty()) {
    const auto& first = *queue_.front();
    const ssize_t wrote = ::write(input_.get(), first.data() + written_, first.size() - written_);
    if (wrote < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (wrote < 0) return close_input();
    written_ += static_cast<std::size_t>(wrote);
    if (written_ < first.size()) continue;
    queue_.pop_front();
    written_ = 0;
  }
}

std::optional<std::string> Link::next_line() {
  for (;;) {
    const auto end = received_.find('\n');
    if (end != received_.npos || received_.size() >= kMaxLineBytes) {
      auto line = received_.substr(0, end);
      received_.erase(0, end == received_.npos ? end : end + 1);
      return line;
    }
    std::array<char, kMaxLineBytes> buffer{};
    const ssize_t got = output_ ? ::read(output_.get(), buffer.data(), buffer.size()) : 0;
    if (got == 0) output_.reset();
    if (got <= 0) return std::nullopt;
    received_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

void Link::close_input() {
  input_.reset();
  queue_.clear();
}

std::string Link::last_words() const {
  const auto text = read_file(log_, 1U << 20U);
  return text ? last_line(*text) : "";
}

}  // namespace score::scout
