#include "scout/virtual/control.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr std::size_t kMaxLine = 1024;

struct Address {
  sockaddr_un address{};

  [[nodiscard]] const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Result<Address> address_of(const std::string& path) {
  Address result;
  result.address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(result.address.sun_path))
    return fail(Errc::TooLarge, "{}: too long for a socket", path);
  std::memcpy(result.address.sun_path, path.data(), path.size());
  return result;
}

// One line, or what came before the end.
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

}  // namespace

Result<UniqueFd> listen_control(const std::string& path) {
  const auto address = address_of(path);
  if (!address) return address.error();
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener || ::bind(listener.get(), address->raw(), sizeof(sockaddr_un)) != 0 ||
      ::listen(listener.get(), 8) != 0) {
    return fail(errno_code(errno), "listen at {}", path);
  }
  return listener;
}

void serve_control(int listener, const std::function<std::string(const std::string&)>& answer) {
  const UniqueFd client(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!client) return;
  const auto peer = peer_credentials(client.get());
  if (!peer || (peer->uid.value() != geteuid() && peer->uid.value() != 0)) return;
  set_deadline(client.get());
  const auto reply = answer(read_line(client.get())) + "\n";
  if (const auto written = write_all(client.get(), reply); !written) return;  // nobody waits for it
}

Result<std::string> ask_control(const std::string& path, const std::string& request) {
  const auto address = address_of(path);
  if (!address) return address.error();
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), address->raw(), sizeof(sockaddr_un)) != 0) {
    return fail(errno_code(errno), "no virtual cluster answers at {}", path);
  }
  set_deadline(socket.get());
  if (auto sent = write_all(socket.get(), request + "\n"); !sent) return sent.error();
  const auto reply = read_line(socket.get());
  if (reply.starts_with("ok")) return reply.substr(std::min<std::size_t>(reply.size(), 3));
  return fail(Errc::WrongState, "{}", reply.starts_with("error ") ? reply.substr(6) : "no answer");
}

}  // namespace score::scout
