#include "scored/job/shepherd/daemon_link.hpp"

#include "base/limits.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace score::shepherd {

namespace {

constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::size_t kMostArrived = 2 * base::kMaxPassedFds;

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
    return log_rejection(fmt::format("uid {} may not connect", peer ? peer->uid.value() : 0));
  }
  const int fd = accepted.get();
  if (!loop_.add(fd, EPOLLIN, [this](std::uint32_t events) { on_ready(events); })) return;
  socket_ = std::move(accepted);
  ++connection_;
  reader_ = proto::FrameReader();
  loop_.change(listener_.get(), 0);  // until this one is closed, the next waits
  first_frame_timer_ = loop_.after(base::limits::kHeaderDeadline, [this] { drop(); });
}

void DaemonLink::log_rejection(const std::string& what) {
  if (!limiter_.allow(base::monotonic_now())) return;
  base::log_warning("Dropped connection of node daemon", base::kv("err", what),
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
  const auto got = base::receive_some(socket_.get(), buffer, arrived_);
  if (!got && got.error().is(std::errc::resource_unavailable_try_again)) return;
  if (!got || *got == 0 || arrived_.size() > kMostArrived) return drop();
  reader_.feed({buffer.data(), *got});
  deliver_frames();
}

std::vector<base::UniqueFd> DaemonLink::take_arrived(const proto::InFrame& frame) {
  std::vector<base::UniqueFd> taken;
  wire::PassedDescriptors message;
  if (frame.type != proto::FrameType::PassedDescriptors) return taken;
  if (!message.ParseFromString(frame.payload)) return taken;
  const auto count = std::min<std::size_t>(message.count(), arrived_.size());
  const auto end = arrived_.begin() + static_cast<std::ptrdiff_t>(count);
  std::move(arrived_.begin(), end, std::back_inserter(taken));
  arrived_.erase(arrived_.begin(), end);
  return taken;
}

void DaemonLink::deliver_frames() {
  const auto connection = connection_;
  while (socket_ && connection == connection_) {
    auto frame = reader_.next(proto::Role::NodeDaemon);
    if (!frame) {
      log_rejection(frame.error().message());
      return drop();
    }
    if (!*frame) return;
    loop_.cancel(std::exchange(first_frame_timer_, 0));
    auto descriptors = take_arrived(**frame);
    handlers_.frame(std::move(**frame), std::move(descriptors));
  }
}

void DaemonLink::send_frame(proto::FrameType type, std::string_view payload) {
  if (!socket_) return;
  const bool idle = out_.empty();
  proto::append_frame(out_, type, payload);
  if (out_.size() - written_ > base::limits::kMaxPeerQueueBytes) return drop();
  // One system call writes everything that a turn of the loop queues: the write happens when epoll
  // reports the socket as writable.
  if (idle) loop_.change(socket_.get(), EPOLLIN | EPOLLOUT);
}

void DaemonLink::send_descriptors(const wire::PassedDescriptors& message,
                                  std::vector<base::UniqueFd> fds) {
  if (!socket_) return;
  queued_descriptors_.push_back({out_.size(), std::move(fds)});
  send(message);
}

// Writes up to the next frame with descriptors, or that frame with its descriptors.
base::Result<std::size_t> DaemonLink::write_some() {
  const std::string_view left = std::string_view(out_).substr(written_);
  if (queued_descriptors_.empty()) return base::send_some(socket_.get(), left, {});
  QueuedDescriptors& next = queued_descriptors_.front();
  if (written_ < next.offset) {
    return base::send_some(socket_.get(), left.substr(0, next.offset - written_), {});
  }
  const std::size_t end =
      queued_descriptors_.size() > 1 ? queued_descriptors_[1].offset : out_.size();
  auto put = base::send_some(socket_.get(), left.substr(0, end - written_), next.fds);
  if (put) queued_descriptors_.pop_front();
  return put;
}

void DaemonLink::write_queue() {
  while (written_ < out_.size()) {
    const auto put = write_some();
    if (!put && put.error().is(std::errc::resource_unavailable_try_again)) return;
    if (!put) return drop();
    written_ += *put;
  }
  out_.clear();
  if (out_.capacity() > kReadBytes * 4) out_.shrink_to_fit();
  written_ = 0;
  loop_.change(socket_.get(), EPOLLIN);
  handlers_.sent();
}

void DaemonLink::flush() {
  constexpr int kWaitMs = 1000;
  while (socket_ && written_ < out_.size()) {
    pollfd waiting{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
    if (poll(&waiting, 1, kWaitMs) <= 0) return;
    write_queue();
  }
}

void DaemonLink::drop() {
  if (!socket_) return;
  loop_.cancel(std::exchange(first_frame_timer_, 0));
  loop_.remove(socket_.get());
  socket_.reset();
  queued_descriptors_.clear();
  arrived_.clear();
  out_.clear();
  written_ = 0;
  loop_.change(listener_.get(), EPOLLIN);
  handlers_.lost();
}

}  // namespace score::shepherd
