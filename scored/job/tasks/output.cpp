#include "scored/job/tasks/output.hpp"

#include "base/limits.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace score::shepherd {

const TaskOutputChunk& OutputWindow::push(TaskOutputChunk chunk) {
  chunk.offset = end_;
  end_ += chunk.data.size();
  held_ += chunk.data.size();
  return chunks_.emplace_back(std::move(chunk));
}

void OutputWindow::taken(std::uint64_t bytes) {
  while (bytes > 0 && !chunks_.empty()) {
    auto& [rank, stream, data, offset] = chunks_.front();
    const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, data.size()));
    bytes -= now;
    held_ -= now;
    if (now == data.size()) {
      chunks_.pop_front();
    } else {
      data.erase(0, now);
      offset += now;
    }
  }
}

base::Duration ReadPace::read(std::size_t bytes, base::TimePoint now) {
  if (bytes == 0 || bytes >= kMuch) return {};
  const bool after_pause = now - last_ > 2 * kPause;
  last_ = now;
  return after_pause ? base::Duration() : kPause;
}

base::Result<OutputPump> OutputPump::create() {
  base::UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return base::fail(base::errno_code(errno), "epoll_create1");
  return OutputPump(std::move(epoll));
}

base::Status OutputPump::add(std::uint32_t rank, wire::Stream stream, base::UniqueFd fd) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = sources_.size()}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
    return base::fail(base::errno_code(errno), "cannot watch the output of rank {}", rank);
  }
  sources_.push_back({.fd = std::move(fd), .rank = rank, .stream = stream, .left = {}});
  ++open_;
  return {};
}

std::size_t OutputPump::pump(std::size_t room, const Sink& sink) {
  const std::size_t all = room;
  std::array<epoll_event, 64> ready{};
  const int count = epoll_wait(epoll_.get(), ready.data(), ready.size(), 0);
  for (int i = 0; i < count && room > 0; ++i) {
    Source& source = sources_[ready[static_cast<std::size_t>(i)].data.u64];
    if (source.fd) room -= std::min(room, read_chunk(source, room, sink));
  }
  return all - room;
}

std::size_t OutputPump::read_chunk(Source& source, std::size_t room, const Sink& sink) {
  std::string data;
  const std::size_t most = std::min(
      {room, base::limits::kIoChunkBytes, source.left.value_or(base::limits::kIoChunkBytes)});
  data.resize(most);
  const ssize_t got = read(source.fd.get(), data.data(), most);
  if (got < 0 && (errno == EAGAIN || errno == EINTR) && !source.left) return 0;
  if (got <= 0) {  // end of file; EIO: no process has the terminal open
    end(source);
    return 0;
  }
  data.resize(static_cast<std::size_t>(got));
  if (source.left) *source.left -= data.size();
  const bool last = source.left == 0;
  sink({.rank = source.rank, .stream = source.stream, .data = std::move(data), .offset = 0});
  if (last) end(source);
  return static_cast<std::size_t>(got);
}

void OutputPump::limit_to_present() {
  for (Source& source : sources_) {
    if (!source.fd) continue;
    int present = 0;
    if (ioctl(source.fd.get(), FIONREAD, &present) != 0 || present <= 0) {
      end(source);
    } else {
      source.left = static_cast<std::size_t>(present);
    }
  }
}

void OutputPump::end(Source& source) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, source.fd.get(), nullptr);
  source.fd.reset();
  --open_;
}

}  // namespace score::shepherd
