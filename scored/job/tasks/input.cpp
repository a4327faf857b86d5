#include "scored/job/tasks/input.hpp"

#include "base/errc.hpp"
#include "base/limits.hpp"

#include <algorithm>
#include <cerrno>
#include <termios.h>
#include <unistd.h>

namespace score::shepherd {

InputFeeder::~InputFeeder() {
  for (Reader& reader : readers_) close(reader);
}

base::Status InputFeeder::add(base::UniqueFd fd, bool is_terminal) {
  const std::size_t index = readers_.size();
  auto watched = loop_.add(fd.get(), EPOLLOUT,
                           [this, index](std::uint32_t events) { on_ready(index, events); });
  if (!watched) return watched;
  readers_.push_back({.fd = std::move(fd), .position = start_, .is_terminal = is_terminal});
  return {};
}

void InputFeeder::complete() {
  complete_ = true;
  settle();
}

base::Status InputFeeder::push(std::string_view data, bool eof) {
  if (ended_) return base::fail(base::Errc::WrongState, "input after its end");
  if (buffer_.size() + data.size() > base::limits::kIoWindowBytes) {
    return base::fail(base::Errc::TooLarge, "more than {} bytes of input in flight",
                      base::limits::kIoWindowBytes);
  }
  buffer_ += data;
  ended_ = eof;
  for (Reader& reader : readers_) {
    if (reader.fd) write_to(reader);
  }
  settle();
  return {};
}

void InputFeeder::on_ready(std::size_t index, std::uint32_t events) {
  Reader& reader = readers_[index];
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
    close(reader);  // the task no longer reads it
  } else {
    write_to(reader);
  }
  settle();
}

void InputFeeder::write_to(Reader& reader) {
  const std::uint64_t end = start_ + buffer_.size();
  while (reader.position < end) {
    const auto offset = static_cast<std::size_t>(reader.position - start_);
    const ssize_t put = write(reader.fd.get(), buffer_.data() + offset, buffer_.size() - offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) return loop_.change(reader.fd.get(), EPOLLOUT);
    if (put < 0) return close(reader);
    reader.position += static_cast<std::uint64_t>(put);
  }
  loop_.change(reader.fd.get(), 0);
  if (ended_) finish(reader);
}

void InputFeeder::finish(Reader& reader) {
  if (reader.is_terminal) {
    termios settings{};
    const bool known = tcgetattr(reader.fd.get(), &settings) == 0;
    const char end_of_file = known ? static_cast<char>(settings.c_cc[VEOF]) : '\x04';
    [[maybe_unused]] const auto put = write(reader.fd.get(), &end_of_file, 1);
  }
  close(reader);
}

void InputFeeder::close(Reader& reader) {
  if (!reader.fd) return;
  loop_.remove(reader.fd.get());
  reader.fd.reset();
}

// Drops the bytes that all readers have received.
void InputFeeder::settle() {
  if (!complete_) return;
  std::uint64_t all_have = start_ + buffer_.size();
  for (const Reader& reader : readers_) {
    if (reader.fd) all_have = std::min(all_have, reader.position);
  }
  const std::uint64_t done = all_have - start_;
  if (done == 0) return;
  buffer_.erase(0, static_cast<std::size_t>(done));
  start_ = all_have;
  taken_(done);
}

void InputFeeder::close_all() {
  for (Reader& reader : readers_) close(reader);
  settle();
}

}  // namespace score::shepherd
