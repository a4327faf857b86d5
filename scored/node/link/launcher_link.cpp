#include "scored/node/link/launcher_link.hpp"

#include "base/os/log.hpp"

#include <cstring>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>

namespace score::node {

namespace {

constexpr Duration kLaunchTimeout = std::chrono::seconds{10};  // the launcher gives up after 5

launcher::Request request_of(launcher::Op op, AttemptId attempt = {}) {
  launcher::Request request;
  request.op = op;
  request.attempt = attempt.value();
  return request;
}

Result<UniqueFd> connect_packets(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return fail(Errc::TooLarge, "{}", path);
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) return fail(errno_code(errno), "socket");
  if (::connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail(errno_code(errno), "connect {}", path);
  }
  return made;
}

}  // namespace

LauncherLink::LauncherLink(std::string socket_path, Clock& clock, TaskGroup& tasks,
                           asio::any_io_executor io)
    : path_(std::move(socket_path)),
      clock_(clock),
      tasks_(tasks),
      io_(std::move(io)),
      lease_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {}

bool LauncherLink::connect() {
  if (socket_) return true;
  auto connected = connect_packets(path_);
  if (!connected) return false;
  socket_.emplace(io_, connected->release());
  if (!hand_over_lease()) return false;
  return tasks_.spawn("read the launcher's answers", read_replies(++connection_));
}

void LauncherLink::close() {
  socket_.reset();
  for (Waiter* waiter : waiters_) waiter->done.cancel();
}

bool LauncherLink::hand_over_lease() {
  const auto request = request_of(launcher::Op::Lease);
  const int fd = lease_.get();
  const auto sent = send_with_fds(socket_->native_handle(), std::as_bytes(std::span(&request, 1)),
                                  std::span(&fd, 1));
  if (!sent) close();
  return sent.has_value();
}

bool LauncherLink::send(const launcher::Request& request, std::span<const int> fds) {
  if (!connect()) return false;
  auto sent = send_with_fds(socket_->native_handle(), std::as_bytes(std::span(&request, 1)), fds);
  if (!sent) close();
  return sent.has_value();
}

bool LauncherLink::renew(Duration lease) {
  if (!connect()) return false;
  constexpr Duration::rep kSecond = std::nano::den;
  itimerspec at{};
  at.it_value = {.tv_sec = lease.count() / kSecond, .tv_nsec = lease.count() % kSecond};
  return timerfd_settime(lease_.get(), 0, &at, nullptr) == 0;
}

void LauncherLink::forget(AttemptId attempt) {
  send(request_of(launcher::Op::Forget, attempt), {});
}

asio::awaitable<Result<LaunchedShepherd>> LauncherLink::launch(LaunchOrder order,
                                                               UniqueFd listener) {
  auto request = request_of(launcher::Op::Launch, order.attempt);
  request.user = order.user.value();
  request.in_cgroups = !order.in_cgroups ? 0 : order.in_cpu_directory ? 2 : 1;
  request.low_priority = order.low_priority ? 1 : 0;
  const int fd = listener.get();
  if (!send(request, std::span(&fd, 1))) {
    co_return fail(Errc::Closed, "the launcher of this node is not reachable at {}", path_);
  }
  Waiter waiter{order.attempt, std::nullopt, {}, asio::steady_timer(io_, kLaunchTimeout)};
  auto answered = co_await wait_for(&waiter);
  if (!answered) co_return answered.error();
  LaunchedShepherd launched{waiter.reply->shepherd_pid, waiter.reply->group};
  co_return launched;
}

asio::awaitable<Result<UniqueFd>> LauncherLink::open_ring(AttemptId attempt, RingPlace place) {
  auto request = request_of(launcher::Op::Ring, attempt);
  request.key = place.key;
  request.rank = place.rank;
  request.channel = place.channel;
  request.xdp = place.xdp ? 1 : 0;
  if (!send(request, {})) {
    co_return fail(Errc::Closed, "the launcher of this node is not reachable at {}", path_);
  }
  Waiter waiter{attempt, std::nullopt, {}, asio::steady_timer(io_, kLaunchTimeout)};
  auto answered = co_await wait_for(&waiter);
  if (!answered) co_return answered.error();
  if (waiter.fds.size() != 1) co_return fail(Errc::Malformed, "the launcher sent no ring");
  co_return std::move(waiter.fds.front());
}

// Until the reply is there. By pointer: the caller owns the waiter and awaits this.
asio::awaitable<Status> LauncherLink::wait_for(Waiter* waiter) {
  waiters_.push_back(waiter);
  [[maybe_unused]] auto [ended] = co_await waiter->done.async_wait(kNoThrow);
  waiters_.remove(waiter);
  if (!waiter->reply) {
    co_return fail(ended ? Errc::Closed : Errc::Timeout, "no answer from the launcher");
  }
  if (waiter->reply->error != 0) {
    const std::string step(waiter->reply->step,
                           strnlen(waiter->reply->step, sizeof waiter->reply->step));
    co_return fail(errno_code(static_cast<int>(waiter->reply->error)), "{}", step);
  }
  co_return Status();
}

asio::awaitable<void> LauncherLink::read_replies(std::uint64_t connection) {
  for (;;) {
    auto [failed] = co_await socket_->async_wait(asio::posix::descriptor_base::wait_read, kNoThrow);
    if (connection != connection_ || !socket_) co_return;
    launcher::Reply reply;
    std::vector<UniqueFd> fds;
    const auto got = receive_some(socket_->native_handle(),
                                  {reinterpret_cast<char*>(&reply), sizeof reply}, fds);
    const bool is_empty = !got && got.error().is(std::errc::resource_unavailable_try_again);
    if (is_empty && !failed) continue;
    if (failed || !got || *got != sizeof reply || reply.magic != launcher::kMagic) break;
    take(reply, std::move(fds));
  }
  log_warning("lost connection to the launcher, reconnecting", kv("path", path_));
  close();
}

void LauncherLink::take(const launcher::Reply& reply, std::vector<UniqueFd> fds) {
  for (Waiter* waiter : waiters_) {
    if (waiter->attempt.value() != reply.attempt || waiter->reply) continue;
    waiter->reply = reply;
    waiter->fds = std::move(fds);
    waiter->done.cancel();
    return;
  }
}

}  // namespace score::node
