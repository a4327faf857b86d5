#include "scout/cluster/control.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr std::size_t kMaxLine = 1024;
constexpr std::size_t kMaxClients = 16;  // clients that have not sent their line yet

struct Address {
  sockaddr_un address{};

  [[nodiscard]] const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Result<Address> address_of(const std::string& path) {
  Address result;
  result.address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(result.address.sun_path))
    return fail(Errc::TooLarge, "{}: the path is too long for a socket", path);
  std::memcpy(result.address.sun_path, path.data(), path.size());
  return result;
}

// Reads one line, or everything up to the end of the stream.
std::string read_line(int fd) {
  std::string line;
  char c = 0;
  while (line.size() < kMaxLine && ::read(fd, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

void set_deadline(int fd) {
  const timeval limit{.tv_sec = 30, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

bool watch(int ready, int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  return ::epoll_ctl(ready, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

Result<ControlServer> ControlServer::open(const std::string& path) {
  const auto address = address_of(path);
  if (!address) return address.error();
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  UniqueFd ready(::epoll_create1(EPOLL_CLOEXEC));
  if (!listener || !ready || ::bind(listener.get(), address->raw(), sizeof(sockaddr_un)) != 0 ||
      ::listen(listener.get(), kMaxClients) != 0 || !watch(ready.get(), listener.get())) {
    return fail(errno_code(errno), "cannot listen at {}", path);
  }
  return ControlServer(std::move(listener), std::move(ready));
}

ControlServer::ControlServer(UniqueFd listener, UniqueFd ready)
    : listener_(std::move(listener)), ready_(std::move(ready)) {}

void ControlServer::serve(const Answer& answer) {
  accept_clients();
  std::erase_if(clients_, [&](Client& client) { return answer_client(client, answer); });
}

void ControlServer::accept_clients() {
  for (;;) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    const auto peer = peer_credentials(socket.get());
    if (!peer || (peer->uid.value() != geteuid() && peer->uid.value() != 0)) continue;
    if (!watch(ready_.get(), socket.get())) continue;
    if (clients_.size() == kMaxClients) clients_.pop_front();
    clients_.push_back({std::move(socket), ""});
  }
}

bool ControlServer::answer_client(Client& client, const Answer& answer) {
  std::array<char, kMaxLine> part{};
  const ssize_t count = ::read(client.socket.get(), part.data(), part.size());
  if (count < 0) return errno != EAGAIN && errno != EINTR;
  client.line.append(part.data(), static_cast<std::size_t>(count));
  const std::size_t end = client.line.find('\n');
  if (end == client.line.npos && count > 0 && client.line.size() < kMaxLine) return false;
  const auto reply = answer(client.line.substr(0, end)) + "\n";
  // The reply fits into the socket's buffer, unless the client has closed.
  (void)::send(client.socket.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
  return true;
}

Result<std::string> ask_control(const std::string& path, const std::string& request) {
  const auto address = address_of(path);
  if (!address) return address.error();
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), address->raw(), sizeof(sockaddr_un)) != 0) {
    return fail(errno_code(errno), "no cluster answers at {}", path);
  }
  set_deadline(socket.get());
  if (auto sent = write_all(socket.get(), request + "\n"); !sent) return sent.error();
  const auto reply = read_line(socket.get());
  if (reply.starts_with("ok")) return reply.substr(std::min<std::size_t>(reply.size(), 3));
  return fail(Errc::WrongState, "{}", reply.starts_with("error ") ? reply.substr(6) : "no answer");
}

}  // namespace score::scout
