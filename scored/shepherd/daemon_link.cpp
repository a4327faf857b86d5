#include "scored/shepherd/daemon_link.hpp"

#include "base/limits.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace score::shepherd {

namespace {

constexpr std::size_t kReadBytes = 64 * 1024;

}  // namespace

DaemonLink::DaemonLink(EventLoop& loop, base::UniqueFd listener, std::vector<uid_t> allowed)
    : loop_(loop), listener_(std::move(listener)), allowed_(std::move(allowed)) {}

base::Status DaemonLink::start(Handlers handlers) {
  handlers_ = std::move(handlers);
  if (auto set = base::set_nonblocking(listener_.get(), true); !set) return set;
  return loop_.add(listener_.get(), EPOLLIN, [this](std::uint32_t) { on_accept(); });
}

bool DaemonLink::is_unreachable() const {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (getsockname(listener_.get(), generic, &size) != 0) return false;
  if (size <= offsetof(sockaddr_un, sun_path) || address.sun_path[0] != '/') return false;
  address.sun_path[sizeof address.sun_path - 1] = '\0';

  struct stat info {};

  return stat(address.sun_path, &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

void DaemonLink::on_accept() {
  base::UniqueFd accepted(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!accepted) return;
  const auto peer = base::peer_credentials(accepted.get());
  if (!peer || std::ranges::find(allowed_, peer->uid.value()) == allowed_.end()) {
    return complain(fmt::format("uid {} may not connect", peer ? peer->uid.value() : 0));
  }
  const int fd = accepted.get();
  if (!loop_.add(fd, EPOLLIN, [this](std::uint32_t events) { on_ready(events); })) return;
  socket_ = std::move(accepted);
  ++connection_;
  reader_ = proto::FrameReader();
  loop_.change(listener_.get(), 0);  // the next one waits in the backlog until this one is gone
  first_frame_timer_ = loop_.after(base::limits::kHeaderDeadline, [this] { drop(); });
}

void DaemonLink::complain(const std::string& what) {
  if (!limiter_.allow(base::monotonic_now())) return;
  base::log_warning("drop connection of node daemon", base::kv("err", what),
                    base::kv("suppressed", limiter_.take_suppressed()));
}

void DaemonLink::on_ready(std::uint32_t events) {
  const auto connection = connection_;
  if ((events & EPOLLOUT) != 0) write_queue();
  if (!socket_ || connection != connection_) return;
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read_frames();
}

void DaemonLink::read_frames() {
  std::array<char, kReadBytes> buffer;
  const ssize_t got = read(socket_.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return drop();
  reader_.feed({buffer.data(), static_cast<std::size_t>(got)});
  deliver_frames();
}

void DaemonLink::deliver_frames() {
  const auto connection = connection_;
  while (socket_ && connection == connection_) {
    auto frame = reader_.next(proto::Role::NodeDaemon);
    if (!frame) {
      complain(frame.error().message());
      return drop();
    }
    if (!*frame) return;
    loop_.cancel(std::exchange(first_frame_timer_, 0));
    handlers_.frame(std::move(**frame));
  }
}

void DaemonLink::send_frame(proto::FrameType type, std::string_view payload) {
  if (!socket_) return;
  const bool idle = out_.empty();
  proto::append_frame(out_, type, payload);
  if (out_.size() - written_ > base::limits::kMaxPeerQueueBytes) return drop();
  // One system call for all that a turn of the loop queues: the write happens when epoll says so.
  if (idle) loop_.change(socket_.get(), EPOLLIN | EPOLLOUT);
}

void DaemonLink::write_queue() {
  while (written_ < out_.size()) {
    const ssize_t put = ::send(socket_.get(), out_.data() + written_, out_.size() - written_,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) return;
    if (put < 0) return drop();
    written_ += static_cast<std::size_t>(put);
  }
  out_.clear();
  if (out_.capacity() > kReadBytes * 4) out_.shrink_to_fit();
  written_ = 0;
  loop_.change(socket_.get(), EPOLLIN);
}

void DaemonLink::flush() {
  constexpr int kPatienceMs = 1000;
  while (socket_ && written_ < out_.size()) {
    pollfd waiting{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
    if (poll(&waiting, 1, kPatienceMs) <= 0) return;
    write_queue();
  }
}

void DaemonLink::drop() {
  if (!socket_) return;
  loop_.cancel(std::exchange(first_frame_timer_, 0));
  loop_.remove(socket_.get());
  socket_.reset();
  out_.clear();
  written_ = 0;
  loop_.change(listener_.get(), EPOLLIN);
  handlers_.lost();
}

}  // namespace score::shepherd
