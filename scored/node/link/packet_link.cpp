#include "scored/node/link/packet_link.hpp"

#include "base/os/log.hpp"

#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>

namespace score::node {

namespace {

constexpr Duration kTimeout = std::chrono::seconds{10};  // the launcher gives up after 5
constexpr Duration kReachPeriod = std::chrono::milliseconds{20};

Result<UniqueFd> connect_packets(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return fail(Errc::TooLarge, "{}", path);
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) return fail(errno_code(errno), "cannot make a socket");
  if (::connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail(errno_code(errno), "cannot connect to {}", path);
  }
  return made;
}

}  // namespace

PacketLink::PacketLink(std::string name, std::string socket_path, TaskGroup& tasks,
                       asio::any_io_executor io)
    : name_(std::move(name)), path_(std::move(socket_path)), tasks_(tasks), io_(std::move(io)) {}

bool PacketLink::connect() {
  if (socket_) return true;
  auto connected = connect_packets(path_);
  if (!connected) return false;
  socket_.emplace(io_, connected->release());
  return tasks_.spawn("read the answers of a helper", read_replies(++connection_));
}

asio::awaitable<bool> PacketLink::reach(Duration limit) {
  asio::steady_timer timer(io_);
  for (Duration waited{0}; !connect() && waited < limit; waited += kReachPeriod) {
    timer.expires_after(kReachPeriod);
    if (auto [stopped] = co_await timer.async_wait(kNoThrow); stopped) break;
  }
  co_return socket_.has_value();
}

void PacketLink::close() {
  socket_.reset();
  for (Waiter* waiter : waiters_) waiter->done.cancel();
}

// This is not a coroutine, because the request lives only in the caller.
asio::awaitable<Result<PacketLink::Answer>> PacketLink::ask(AttemptId attempt,
                                                            std::span<const std::byte> request,
                                                            std::span<const int> fds) {
  const bool is_connected = connect();
  const bool is_sent =
      is_connected && send_with_fds(socket_->native_handle(), request, fds).has_value();
  if (is_connected && !is_sent) close();
  return wait_for(attempt, is_sent);
}

asio::awaitable<Result<PacketLink::Answer>> PacketLink::wait_for(AttemptId attempt, bool is_sent) {
  if (!is_sent) {
    co_return fail(Errc::Closed, "the {} of this node is not reachable at {}", name_, path_);
  }
  Waiter waiter{attempt, std::nullopt, {}, asio::steady_timer(io_, kTimeout)};
  waiters_.push_back(&waiter);
  [[maybe_unused]] auto [ended] = co_await waiter.done.async_wait(kNoThrow);
  waiters_.remove(&waiter);
  if (!waiter.reply) {
    co_return fail(ended ? Errc::Closed : Errc::Timeout, "no answer from the {}", name_);
  }
  if (waiter.reply->error != 0) {
    const std::string step(waiter.reply->step,
                           strnlen(waiter.reply->step, sizeof waiter.reply->step));
    co_return fail(errno_code(static_cast<int>(waiter.reply->error)), "{}", step);
  }
  Answer answer{*waiter.reply, std::move(waiter.fds)};
  co_return std::move(answer);
}

asio::awaitable<void> PacketLink::read_replies(std::uint64_t connection) {
  for (;;) {
    auto [failed] = co_await socket_->async_wait(asio::posix::descriptor_base::wait_read, kNoThrow);
    if (connection != connection_ || !socket_) co_return;
    launcher::StartReply reply;
    std::vector<UniqueFd> fds;
    const auto got = receive_some(socket_->native_handle(),
                                  {reinterpret_cast<char*>(&reply), sizeof reply}, fds);
    const bool is_empty = !got && got.error().is(std::errc::resource_unavailable_try_again);
    if (is_empty && !failed) continue;
    if (failed || !got || *got != sizeof reply || reply.magic != launcher::kMagic) break;
    take(reply, std::move(fds));
  }
  log_warning(fmt::format("Lost connection to the {}; reconnecting", name_), kv("path", path_));
  close();
}

void PacketLink::take(const launcher::StartReply& reply, std::vector<UniqueFd> fds) {
  for (Waiter* waiter : waiters_) {
    if (waiter->attempt.value() != reply.attempt || waiter->reply) continue;
    waiter->reply = reply;
    waiter->fds = std::move(fds);
    waiter->done.cancel();
    return;
  }
}

}  // namespace score::node
