#include "proto/transport/unix_connection.hpp"

#include "base/async/timeout.hpp"
#include "base/errc.hpp"
#include "proto/transport/accept.hpp"
#include "proto/transport/stream_connection.hpp"

#include <cerrno>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace score::proto {

namespace asio = boost::asio;
using base::Result;
using local = asio::local::stream_protocol;

namespace {

constexpr std::size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;
constexpr int kSocketBacklog = 1024;

Result<void> check_path(const std::string& path) {
  if (path.empty() || path.size() > kMaxPath) {
    return base::fail(base::Errc::TooLarge, "socket path '{}' must have 1 to {} bytes", path,
                      kMaxPath);
  }
  return {};
}

// Removes the socket of an earlier run, which has no listener any more.
Result<void> remove_stale(asio::any_io_executor executor, const std::string& path) {
  struct stat info {};

  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return {};
    return base::fail(base::errno_code(errno), "{}", path);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return base::fail(base::Errc::Exists, "{} exists and is not a socket", path);
  }
  local::socket probe(executor);
  boost::system::error_code ec;
  probe.connect(local::endpoint(path), ec);
  if (!ec) return base::fail(base::Errc::Exists, "another process already listens on {}", path);
  if (ec != asio::error::connection_refused) return base::fail(ec, "{}", path);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return base::fail(base::errno_code(errno), "cannot remove {}", path);
  }
  return {};
}

asio::awaitable<Result<base::UniqueFd>> connect_descriptor(std::string path) {
  auto executor = co_await asio::this_coro::executor;
  local::socket socket(executor);
  const local::endpoint endpoint(path);
  auto [ec] = co_await socket.async_connect(endpoint, kNoThrow);
  if (ec) co_return Error(ec);
  co_return base::UniqueFd(socket.release());
}

}  // namespace

Result<UnixPeer> adopt_unix(asio::any_io_executor executor, base::UniqueFd fd,
                            ConnectionLimits limits) {
  auto credentials = base::peer_credentials(fd.get());
  if (!credentials) return credentials.error();
  boost::system::error_code ec;
  asio::posix::stream_descriptor descriptor(executor);
  descriptor.assign(fd.get(), ec);
  if (ec) return base::fail(ec, "cannot adopt the socket");
  auto stream = std::make_unique<PlainStream>(fd.release(), limits.descriptors);
  std::string peer = fmt::format("uid {} pid {}", credentials->uid, credentials->pid);
  auto connection = std::make_shared<StreamConnection>(std::move(descriptor), std::move(stream),
                                                       std::move(peer), limits);
  return UnixPeer{std::move(connection), *credentials};
}

asio::awaitable<Result<UnixPeer>> connect_unix(std::string path, base::Duration deadline,
                                               ConnectionLimits limits) {
  auto executor = co_await asio::this_coro::executor;
  auto checked = check_path(path);
  if (!checked) co_return checked.error();
  base::SteadyClock clock;
  auto fd = co_await base::with_timeout(clock, deadline, connect_descriptor(path));
  if (!fd) co_return fd.error().with_context("cannot connect to {}", path);
  co_return adopt_unix(executor, std::move(*fd), limits);
}

UnixListener::UnixListener(local::acceptor acceptor, std::string path, bool owns_file,
                           ConnectionLimits limits)
    : acceptor_(std::move(acceptor)),
      path_(std::move(path)),
      owns_file_(owns_file),
      limits_(limits) {}

UnixListener::~UnixListener() {
  close();
}

Result<UnixListener> UnixListener::open(asio::any_io_executor executor, std::string path,
                                        mode_t mode, ConnectionLimits limits) {
  auto checked = check_path(path);
  if (!checked) return checked.error();
  auto removed = remove_stale(executor, path);
  if (!removed) return removed.error();
  boost::system::error_code ec;
  local::acceptor acceptor(executor);
  acceptor.open(local(), ec);
  if (ec) return base::fail(ec, "cannot listen on {}", path);
  // The file has its mode from the beginning, so that no process can find it with a different one.
  // umask is process-wide, but only this thread creates files.
  mode_t before = ::umask(static_cast<mode_t>(~mode & 0777U));
  acceptor.bind(local::endpoint(path), ec);
  ::umask(before);
  if (ec) return base::fail(ec, "cannot bind {}", path);
  UnixListener listener(std::move(acceptor), path, true, limits);
  listener.acceptor_.listen(kSocketBacklog, ec);
  if (ec) return base::fail(ec, "cannot listen on {}", path);
  return listener;
}

Result<UnixListener> UnixListener::adopt(asio::any_io_executor executor, base::UniqueFd fd,
                                         std::string path, ConnectionLimits limits) {
  boost::system::error_code ec;
  local::acceptor acceptor(executor);
  acceptor.assign(local(), fd.get(), ec);
  if (ec) return base::fail(ec, "cannot listen on inherited {}", path);
  static_cast<void>(fd.release());
  return UnixListener(std::move(acceptor), std::move(path), false, limits);
}

asio::awaitable<Result<UnixPeer>> UnixListener::accept() {
  for (;;) {
    auto fd = co_await accept_descriptor(acceptor_);
    if (!fd) co_return fd.error();
    auto peer = adopt_unix(acceptor_.get_executor(), std::move(*fd), limits_);
    if (peer) co_return peer;
  }
}

void UnixListener::close() {
  if (!acceptor_.is_open()) return;
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  if (owns_file_) ::unlink(path_.c_str());
}

}  // namespace score::proto
